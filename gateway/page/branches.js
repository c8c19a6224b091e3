// The branches of a conversation: alternatives to a message, editing one's own, and asking again for an answer.
// Each is another context, a fork of this one.

import { Backoff } from "./backoff.js";
import { $, h } from "./dom.js";
import { Problem, newKey, request } from "./request.js";
import { may } from "./signin.js";
import { visible } from "./visible.js";

const counter = (id) => Number(id.slice(id.lastIndexOf(":") + 1));

export class Branches {
  #name;
  #entries = [];
  #choices = []; // { after, contexts } where this conversation has alternatives
  #places = new Map(); // choices, by the event of the first message after them
  #known; // the related contexts in the list when the choices were loaded
  #isAvailable = true; // the gateway has a blob store
  #drafts = new Map(); // { text, provider, model, current, error, isSending, body, key } of open forms, by event
  #target; // { name, after, key }: the control to reveal when a context is shown; undefined: none
  #loading; // the AbortController of retries
  #options;

  // options: redraw() updates the controls of all messages; reveal(id, key) shows a message and focuses its control;
  // send(name, events) sends a message; models() returns known models; compare(choice, name) shows two alternatives.
  constructor(options) {
    this.#options = options;
    // A person who does something else keeps the focus. A click that sets a target comes after these events.
    for (const type of ["keydown", "pointerdown"]) addEventListener(type, () => (this.#target = undefined), { capture: true });
  }

  // select loads the branches of another context.
  select(name) {
    this.#name = name;
    this.#entries = [];
    this.#choices = [];
    this.#places = new Map();
    this.#drafts.clear();
    this.#known = undefined;
    if (this.#target?.name !== name) this.#target = undefined;
    this.#loading?.abort();
    if (name) this.#load();
  }

  // related reloads the branches if the list shows others than before.
  related(names) {
    const known = names.join(" ");
    if (this.#known !== undefined && this.#known !== known) this.#load();
    this.#known = known;
  }

  // #load retries until the gateway gives an answer.
  async #load() {
    this.#loading?.abort();
    const { signal } = (this.#loading = new AbortController());
    const backoff = new Backoff(signal);
    while (!signal.aborted) {
      try {
        const response = await request(`contexts/${encodeURIComponent(this.#name)}/branches`, { signal });
        this.#choices = (await response.json()).choices;
        this.update(this.#entries);
        return;
      } catch (error) {
        if (signal.aborted) return;
        this.#isAvailable = !(error instanceof Problem && error.status === 501);
        if (!this.#isAvailable) this.#options.redraw();
        if (error instanceof Problem && (!error.temporary || !this.#isAvailable)) return;
      }
      await backoff.wait();
    }
  }

  // update finds the messages with alternatives.
  update(entries) {
    this.#entries = entries;
    const places = new Map();
    for (const choice of this.#choices) {
      const after = counter(choice.after);
      const first = entries.find(({ content: { event_id: id } }) => id && counter(id) > after);
      if (first) places.set(first.content.event_id, choice);
    }
    const isSame = JSON.stringify([...places]) === JSON.stringify([...this.#places]);
    this.#places = places;
    if (!isSame) this.#options.redraw(); // a press of the space bar on a control ends on the same element
    const isTarget = ([, { after }]) => this.#target?.name === this.#name && this.#target.after === counter(after);
    const shown = [...places].find(isTarget);
    if (shown) {
      const { key } = this.#target;
      this.#target = undefined;
      this.#options.reveal(shown[0], key);
    }
  }

  // form returns the open form of a message, or undefined.
  form({ content: { event_id: id, entry_type: { type } } }) {
    const draft = this.#drafts.get(id);
    return draft && (type === "user_message" ? this.#editForm(id, draft) : this.#modelForm(id, draft));
  }

  // controls returns the controls of a message.
  controls({ content: { event_id: id, entry_type: { type }, content } }) {
    if (!id || !this.#isAvailable) return [];
    const choice = this.#places.get(id);
    return [
      choice && this.#switch(choice),
      choice && h("button", { type: "button", class: "quiet", "data-key": "compare", onclick: () => this.#options.compare(choice, this.#name) }, "Compare"),
      may("write") && (type === "user_message"
        ? h("button", { type: "button", class: "quiet", "data-key": "edit-message", onclick: () => this.#open(id, { text: content }, "text") }, "Edit")
        : h("button", { type: "button", class: "quiet", "data-key": "regenerate", onclick: () => this.#openModel(id) }, "Regenerate")),
    ];
  }

  #switch({ after, contexts }) {
    const at = contexts.indexOf(this.#name);
    const step = (key, text, label, to) => h("button", {
      type: "button", class: "quiet", "data-key": key, "aria-label": label, "aria-disabled": !to && "true",
      onclick: () => {
        if (!to) return;
        this.#target = { name: to, after: counter(after), key };
        location.hash = to;
      },
    }, text);
    return h("span", { class: "switch", role: "group", "aria-label": `Alternative ${at + 1} of ${contexts.length}` },
      step("previous", "‹", "Previous alternative", contexts[at - 1]), h("span", null, `${at + 1}/${contexts.length}`),
      step("next", "›", "Next alternative", contexts[at + 1]));
  }

  #open(id, draft, focus) {
    this.#drafts.set(id, draft);
    this.#options.redraw();
    this.#options.reveal(id, focus);
  }

  #close(id, focus) {
    this.#drafts.delete(id);
    this.#options.redraw();
    this.#options.reveal(id, focus);
  }

  #editForm(id, draft) {
    const submit = async () => {
      const content = draft.text.trim();
      if (content) await this.#fork(draft, { before: id }, (name) => this.#options.send(name, [{ _tag: "UserMessageEvent", content }]));
    };
    return this.#form(id, draft, "Edit the message", "edit-message", "Send", submit,
      field("textarea", "text", draft, { "aria-label": "Message", rows: 1, dir: "auto" }));
  }

  // #openModel fills in the current model, which only a worker knows.
  async #openModel(id) {
    const draft = { provider: "", model: "" };
    this.#open(id, draft, "submit");
    $("models").replaceChildren(...this.#options.models().map((value) => h("option", { value })));
    try {
      const response = await request(`contexts/${encodeURIComponent(this.#name)}/state`);
      draft.current = (await response.json()).config.primary;
    } catch {
      return; // empty fields keep the current model
    }
    if (this.#drafts.get(id) !== draft || draft.provider || draft.model || draft.current.isDefault) return;
    Object.assign(draft, { provider: draft.current.providerId, model: draft.current.model });
    this.#options.redraw();
  }

  #modelForm(id, draft) {
    const submit = async () => {
      const provider = draft.provider.trim();
      const model = draft.model.trim();
      const { isDefault, ...current } = draft.current ?? {};
      const isOther = (provider || model) && (provider !== current.providerId || model !== current.model);
      if (isOther && !(provider && model)) return this.#fail(draft, "Enter a provider and a model.");
      const settings = provider === current.providerId ? current : {};
      const events = isOther ? [{ ...settings, _tag: "SetProviderConfigEvent", providerId: provider, model }] : undefined;
      await this.#fork(draft, { regenerate: id, events });
    };
    return this.#form(id, draft, "Ask again for the answer", "regenerate", "Regenerate", submit,
      h("label", null, h("span", null, "Provider"), field("input", "provider", draft, { type: "text", placeholder: "current" })),
      h("label", null, h("span", null, "Model"), field("input", "model", draft, { type: "text", list: "models", placeholder: "current" })));
  }

  #form(id, draft, label, key, text, submit, ...fields) {
    const form = h("form", { class: `branch-form ${key}`, "aria-label": label },
      fields,
      h("p", { class: "problem", role: "alert" }, draft.error),
      h("div", { class: "buttons" },
        h("button", { type: "submit", "data-key": "submit", "aria-disabled": draft.isSending && "true" }, text),
        h("button", { type: "button", class: "quiet", "data-key": "cancel", onclick: () => this.#close(id, key) }, "Cancel")));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (!draft.isSending) submit();
    });
    form.addEventListener("keydown", (event) => {
      if (event.key === "Escape") {
        event.stopPropagation(); // elsewhere Escape stops the answer
        this.#close(id, key);
      } else if (event.key === "Enter" && event.target.matches("textarea") && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        form.requestSubmit();
      }
    });
    return form;
  }

  #fail(draft, error) {
    Object.assign(draft, { error, isSending: false });
    this.#options.redraw();
  }

  // #fork creates a branch and shows it, unless the user has left this context in the meantime.
  async #fork(draft, options, created) {
    const name = this.#name;
    const body = JSON.stringify(options);
    if (draft.body !== body) Object.assign(draft, { body, key: newKey() }); // the key belongs to the body
    Object.assign(draft, { error: "", isSending: true });
    this.#options.redraw();
    try {
      const response = await request(`contexts/${encodeURIComponent(name)}/fork`, {
        method: "POST", headers: { "Content-Type": "application/json", "Idempotency-Key": `"${draft.key}"` }, body,
      });
      const { contextName } = await response.json();
      created?.(contextName);
      if (name === this.#name) location.hash = contextName;
    } catch (error) {
      if (name === this.#name) this.#fail(draft, error.message);
    }
  }
}

function field(tag, key, draft, properties) {
  const element = h(tag, { "data-key": key, autocomplete: "off", spellcheck: tag === "input" && "false", oninput: (event) => (draft[key] = event.target.value), ...properties });
  element.value = tag === "input" ? visible(draft[key]) : draft[key];
  return element;
}
