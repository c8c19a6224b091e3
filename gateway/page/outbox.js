// Outbox sends messages one at a time and retries until the gateway accepts or rejects them.
// Each has an idempotency key, so it is recorded once. Unsent messages are shown above the input
// box and not in the conversation, so no message appears twice. They survive a reload of the page
// unless their attachments are too long for the storage; then the browser asks before leaving.

import { ask, Problem } from "./ask.js";
import { Backoff } from "./backoff.js";
import { $, h } from "./dom.js";
import { keep, kept } from "./kept.js";

const STORE = "outbox";

export class Outbox {
  #messages = []; // { key, name, events, trouble, refused }
  #sending = false;
  #isKept = true; // for when the page is loaded again
  #name;
  #edit;
  #sent;

  // edit is called with the events of a message that the user takes back, in the selected
  // context; sent with the name of a context that accepted a message.
  constructor({ edit, sent }) {
    this.#edit = edit;
    this.#sent = sent;
    this.#messages = kept(STORE) ?? [];
    addEventListener("beforeunload", (event) => this.#isKept || event.preventDefault());
    this.#deliver();
  }

  // look shows the unsent messages of a context.
  look(name) {
    this.#name = name;
    this.#show();
  }

  // add queues the events of a message; the last one has its text.
  add(name, events) {
    this.#messages.push({ key: key(), name, events });
    this.#changed();
    this.#deliver();
  }

  async #deliver() {
    if (this.#sending) return;
    this.#sending = true;
    const backoff = new Backoff();
    for (let message; (message = this.#messages.find((m) => !m.refused)); ) {
      try {
        await post(message);
        this.#remove(message);
        this.#sent(message.name);
        backoff.reset();
      } catch (error) {
        message.trouble = error.message;
        message.refused = error instanceof Problem && !error.temporary;
        this.#changed();
        if (!message.refused) await backoff.wait();
      }
    }
    this.#sending = false;
  }

  #remove(message) {
    this.#messages = this.#messages.filter((m) => m !== message);
    this.#changed();
  }

  #changed() {
    this.#isKept = keep(STORE, this.#messages.length > 0 ? this.#messages : undefined);
    this.#show();
  }

  #show() {
    const here = this.#messages.filter((m) => m.name === this.#name);
    $("outbox").replaceChildren(...here.map((message) =>
      h("li", { class: message.refused ? "refused" : message.trouble ? "trouble" : "" },
        h("span", { class: "text" }, message.events.at(-1).content),
        h("span", { class: "state" }, message.refused ? message.trouble : message.trouble ? `${message.trouble}; trying again` : "sending"),
        message.refused && h("button", { type: "button", class: "quiet", onclick: () => this.#takeBack(message) }, "Edit"))));
  }

  #takeBack(message) {
    this.#remove(message);
    this.#edit(message.events);
  }
}

async function post({ key, name, events }) {
  await ask(`contexts/${encodeURIComponent(name)}/events`, {
    method: "POST",
    headers: { "Content-Type": "application/json", "Idempotency-Key": `"${key}"` },
    body: JSON.stringify(events),
  });
}

// key returns a random key; crypto.randomUUID requires TLS.
function key() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, "0")).join("");
}
