// What survives that the page is loaded again, in the same tab.

// kept is what was kept under a name; undefined for nothing.
export function kept(name) {
  try {
    return JSON.parse(sessionStorage.getItem(name)) ?? undefined;
  } catch {
    return undefined; // the browser lets pages keep nothing
  }
}

// keep keeps a value, of undefined nothing, and says whether it could.
export function keep(name, value) {
  try {
    sessionStorage.removeItem(name); // also when there is no room for what comes
    if (value !== undefined) sessionStorage.setItem(name, JSON.stringify(value));
    return true;
  } catch {
    return value === undefined;
  }
}
