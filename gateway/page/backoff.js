// Backoff waits between retries, exponentially up to 5 s, with jitter, and not beyond the
// time when the network is back.
export class Backoff {
  #tries = 0;
  #signal;

  constructor(signal) {
    this.#signal = signal;
  }

  reset() {
    this.#tries = 0;
  }

  // wait takes an explicit delay in ms, such as one given by the server.
  async wait(hint) {
    const ms = hint ?? Math.min(5000, 250 * 2 ** this.#tries++) * (0.5 + Math.random() / 2);
    const over = new AbortController();
    await new Promise((resolve) => {
      setTimeout(resolve, ms);
      addEventListener("online", resolve, { signal: over.signal });
      this.#signal?.addEventListener("abort", resolve, { signal: over.signal });
    });
    over.abort();
  }
}
