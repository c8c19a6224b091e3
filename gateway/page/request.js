// request is fetch without caching. Its errors are fit for users: a Problem from the
// gateway, or an unreachable gateway.
export async function request(url, options) {
  const response = await fetch(url, { cache: "no-store", ...options }).catch((error) => {
    // The messages of network errors differ between browsers.
    throw options?.signal?.aborted ? error : new Error("the gateway is unreachable");
  });
  if (!response.ok) throw new Problem(response.status, await response.json().catch(() => ({})));
  return response;
}

// Problem is an error response (RFC 9457).
export class Problem extends Error {
  constructor(status, { title, detail }) {
    super([title, detail].filter(Boolean).join(": ") || `the gateway responded with status ${status}`);
    this.status = status;
  }

  // temporary reports whether a retry may succeed.
  get temporary() {
    return this.status >= 500 || this.status === 408 || this.status === 429;
  }
}
