// Storage that survives a reload of the page in the same tab.

// kept returns a stored value or undefined.
export function kept(name) {
  try {
    return JSON.parse(sessionStorage.getItem(name)) ?? undefined;
  } catch {
    return undefined; // the browser lets pages keep nothing
  }
}

// keep stores a value, or removes it if undefined, and reports success.
export function keep(name, value) {
  try {
    sessionStorage.removeItem(name); // also when there is no room for what comes
    if (value !== undefined) sessionStorage.setItem(name, JSON.stringify(value));
    return true;
  } catch {
    return value === undefined;
  }
}
