import { authorization, isReadable } from "./link.js";
import { signIn } from "./signin.js";

// request is fetch without caching. Its errors are fit for users: a Problem from the gateway, or an
// unreachable gateway. If the session has ended, it never resolves: signing in loads the page again. It never resolves
// either for what a share link may not read.
export async function request(url, options) {
  if (!isReadable(url)) return new Promise(() => {});
  const headers = { ...options?.headers, ...authorization };
  const response = await fetch(url, { cache: "no-store", ...options, headers }).catch((error) => {
    // The messages of network errors differ between browsers.
    throw options?.signal?.aborted ? error : new Error("the gateway is unreachable");
  });
  if (response.status === 401) return signIn();
  if (!response.ok) throw new Problem(response.status, await response.json().catch(() => ({})));
  return response;
}

// relative returns a path of the gateway as an address for request: a proxy may serve the page below a path.
export function relative(path) {
  const base = new URL(".", location).pathname;
  return path.slice(path.startsWith(base) ? base.length : 1);
}

// Problem is an error response (RFC 9457).
export class Problem extends Error {
  constructor(status, { title, detail, type, tag, field }) {
    super([title, detail].filter(Boolean).join(": ") || `the gateway responded with status ${status}`);
    Object.assign(this, { status, detail, type, tag, field });
  }

  // isDeleted reports whether the context was deleted for ever.
  get isDeleted() {
    return this.type === "urn:chronicle:problem:deleted";
  }

  // temporary reports whether a retry may succeed.
  get temporary() {
    return this.status >= 500 || this.status === 408 || this.status === 429;
  }
}

// send sends the JSON of events to a context. Repeating it with the same key is safe.
export async function send(name, body, key) {
  await request(`contexts/${encodeURIComponent(name)}/events`, {
    method: "POST",
    headers: { "Content-Type": "application/json", "Idempotency-Key": `"${key}"` },
    body,
  });
}

// newKey returns a random key; crypto.randomUUID requires TLS.
export function newKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, "0")).join("");
}
