// Backoff waits between tries: longer from try to try, up to 5 s, spread, and no
// longer than until the network is back.
export class Backoff {
  #tries = 0;
  #signal;

  constructor(signal) {
    this.#signal = signal;
  }

  reset() {
    this.#tries = 0;
  }

  // wait takes a time in ms instead of its own, if somebody knows better.
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
