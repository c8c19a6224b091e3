// Backoff waits between retries: exponentially up to 5 s, with jitter, and only until the
// network is back.
export class Backoff {
  #tries = 0;
  #signal;

  constructor(signal) {
    this.#signal = signal;
  }

  reset() {
    this.#tries = 0;
  }

  // A delay in ms, for example from the server, overrides the backoff.
  async wait(delay) {
    const ms = delay ?? Math.min(5000, 250 * 2 ** this.#tries++) * (0.5 + Math.random() / 2);
    const done = new AbortController();
    await new Promise((resolve) => {
      setTimeout(resolve, ms);
      addEventListener("online", resolve, { signal: done.signal });
      this.#signal?.addEventListener("abort", resolve, { signal: done.signal });
    });
    done.abort();
  }
}
