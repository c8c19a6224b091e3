// What a person can do with an entry: copy it, retry after an error, send a rejected message again.

import { copyButton } from "./copy.js";
import { h } from "./dom.js";
import { may } from "./signin.js";

const isMessage = (type) => type === "user_message" || type === "assistant_message";

export class Actions {
  #retryable; // the entry of the error after which no message follows
  #queued = new Set(); // the entries of messages that wait for the end of the running turn
  #options;

  // options: redraw() updates the controls of all entries; send(events) sends a message; edit(events) edits one again.
  constructor(options) {
    this.#options = options;
  }

  // update finds the error that can be retried, and the messages that wait.
  update(entries, isAnswering) {
    const last = entries.findLastIndex(({ content: { entry_type: { type, subtype } } }) => isMessage(type) || subtype === "request_failed");
    const failed = entries[last]?.content.entry_type.subtype === "request_failed" && !isAnswering ? entries[last] : undefined;
    const running = isAnswering ? entries.findIndex(({ content }) => content.chunks || (content.entry_type.tool_call_id && !content.result_timestamp)) : -1;
    const queued = new Set(running < 0 ? [] : entries.slice(running).filter(({ content }) => content.entry_type.type === "user_message"));
    if (failed === this.#retryable && queued.size === this.#queued.size && queued.isSubsetOf(this.#queued)) return;
    this.#retryable = failed;
    this.#queued = queued;
    this.#options.redraw();
  }

  // controls returns the controls of an entry.
  controls(entry) {
    const { content, chunks, event_id: id, entry_type: { type } } = entry.content;
    const button = (key, text, onclick) => h("button", { type: "button", class: "quiet shown", "data-key": key, onclick }, text);
    const rejected = may("write") && rejectedMessage(entry.content);
    return [
      this.#queued.has(entry) && h("span", { class: "queued" }, "Waits for the running answer"),
      isMessage(type) && id && content && !chunks && copyButton("Copy", () => content),
      entry === this.#retryable && may("write") && button("retry", "Retry", () => this.#options.send([{ _tag: "AnswerRequestedEvent" }])),
      rejected && button("resend", "Send again", () => this.#options.send([rejected])),
      rejected && button("edit-rejected", "Edit", () => this.#options.edit([rejected])),
    ].filter(Boolean);
  }
}

// rejectedMessage returns the event of the message that an entry says was rejected, or undefined.
export function rejectedMessage({ content, entry_type: { subtype } }) {
  if (subtype !== "rejected") return undefined;
  try {
    const { _tag: tag, content: text, settings } = JSON.parse(content.slice(content.indexOf("\n") + 1));
    if (/^UserMessage(Event)?$/.test(tag) && typeof text === "string") return { _tag: "UserMessageEvent", content: text, ...(settings ? { settings } : {}) };
  } catch {
    // it is no JSON, or truncated
  }
  return undefined;
}
