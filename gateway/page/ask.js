// What is asked of the gateway.

// ask is fetch of what is never kept, and throws what can be told to people: a
// Problem that the gateway answered with, or that it did not answer.
export async function ask(url, options) {
  const response = await fetch(url, { cache: "no-store", ...options }).catch((error) => {
    // What a browser says of a network is its own: "Failed to fetch", "Load failed".
    throw options?.signal?.aborted ? error : new Error("the gateway cannot be reached");
  });
  if (!response.ok) throw new Problem(response.status, await response.json().catch(() => ({})));
  return response;
}

// Problem is an answer that says what is wrong (RFC 9457).
export class Problem extends Error {
  constructor(status, { title, detail }) {
    super([title, detail].filter(Boolean).join(": ") || `the gateway answered ${status}`);
    this.status = status;
  }

  // temporary says that the same may work a moment later.
  get temporary() {
    return this.status >= 500 || this.status === 408 || this.status === 429;
  }
}
