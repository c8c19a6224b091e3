// Session storage: it survives a reload of the page in the same tab.

// load returns a stored value or undefined.
export function load(name) {
  try {
    return JSON.parse(sessionStorage.getItem(name)) ?? undefined;
  } catch {
    return undefined; // the browser denies storage
  }
}

// store stores a value, or removes it if undefined. It returns whether it succeeded.
export function store(name, value) {
  try {
    sessionStorage.removeItem(name); // first, so that a value that exceeds the quota leaves no old one
    if (value !== undefined) sessionStorage.setItem(name, JSON.stringify(value));
    return true;
  } catch {
    return value === undefined;
  }
}

// clear removes all values.
export function clear() {
  try {
    sessionStorage.clear();
  } catch {
    // the browser denies storage
  }
}
