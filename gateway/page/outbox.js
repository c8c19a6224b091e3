// Outbox sends messages one at a time and retries until the gateway accepts or rejects them. An
// idempotency key prevents duplicates. Unsent messages are shown above the input box. They survive
// a reload of the page unless they exceed the storage quota; then the browser asks before leaving.

import { Problem, newKey, send } from "./request.js";
import { Backoff } from "./backoff.js";
import { $, h, message as textOf } from "./dom.js";
import { load, store } from "./storage.js";

const STORAGE_KEY = "outbox";

export class Outbox {
  #messages = []; // { key, name, events, error, rejected }
  #sending = false;
  #isStored = true;
  #name;
  #edit;
  #sent;

  // edit receives the events of a message that the user edits again. sent receives the name of a
  // context that accepted a message.
  constructor({ edit, sent }) {
    this.#edit = edit;
    this.#sent = sent;
    this.#messages = load(STORAGE_KEY) ?? [];
    addEventListener("beforeunload", (event) => this.#isStored || event.preventDefault());
    this.#deliver();
  }

  // select shows the unsent messages of a context.
  select(name) {
    this.#name = name;
    this.#show();
  }

  // add queues a message; the last event has its text.
  add(name, events) {
    this.#messages.push({ key: newKey(), name, events });
    this.#changed();
    this.#deliver();
  }

  async #deliver() {
    if (this.#sending) return;
    this.#sending = true;
    const backoff = new Backoff();
    for (let message; (message = this.#messages.find((m) => !m.rejected)); ) {
      try {
        await send(message.name, JSON.stringify(message.events), message.key);
        this.#remove(message);
        this.#sent(message.name);
        backoff.reset();
      } catch (error) {
        message.error = error.message;
        message.rejected = error instanceof Problem && !error.temporary;
        this.#changed();
        if (!message.rejected) await backoff.wait();
      }
    }
    this.#sending = false;
  }

  #remove(message) {
    this.#messages = this.#messages.filter((m) => m !== message);
    this.#changed();
  }

  #changed() {
    this.#isStored = store(STORAGE_KEY, this.#messages.length > 0 ? this.#messages : undefined);
    this.#show();
  }

  #show() {
    const messages = this.#messages.filter((m) => m.name === this.#name);
    $("outbox").replaceChildren(...messages.map((message) =>
      h("li", { class: message.rejected ? "rejected" : message.error ? "retrying" : "" },
        h("span", { class: "text", dir: "auto" }, textOf(message.events.at(-1).content || message.events[0].fileName || "Retry")),
        h("span", { class: "state" }, message.rejected ? message.error : message.error ? `${message.error}; retrying` : "sending"),
        message.rejected && h("button", { type: "button", class: "quiet", onclick: () => this.#sendAgain(message) }, "Send again"),
        message.rejected && h("button", { type: "button", class: "quiet", onclick: () => this.#editAgain(message) }, isMessage(message) ? "Edit" : "Remove"))));
  }

  // The key of a rejected message would have the same answer.
  #sendAgain(message) {
    this.#remove(message);
    this.add(message.name, message.events);
  }

  #editAgain(message) {
    this.#remove(message);
    if (isMessage(message)) this.#edit(message.events);
  }
}

const isMessage = ({ events }) => events.at(-1)._tag === "UserMessageEvent";
