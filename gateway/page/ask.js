// Requests to the gateway.

// ask is fetch without caching. It throws errors that can be shown to users: a Problem
// from the gateway, or that the gateway did not respond.
export async function ask(url, options) {
  const response = await fetch(url, { cache: "no-store", ...options }).catch((error) => {
    // Network errors have browser-specific texts: "Failed to fetch", "Load failed".
    throw options?.signal?.aborted ? error : new Error("the gateway cannot be reached");
  });
  if (!response.ok) throw new Problem(response.status, await response.json().catch(() => ({})));
  return response;
}

// Problem is an error response (RFC 9457).
export class Problem extends Error {
  constructor(status, { title, detail }) {
    super([title, detail].filter(Boolean).join(": ") || `the gateway answered ${status}`);
    this.status = status;
  }

  // temporary says that a retry may succeed.
  get temporary() {
    return this.status >= 500 || this.status === 408 || this.status === 429;
  }
}
