// The forms on the cards of tool calls that wait for a person. What the user has entered survives an
// update of the card.

import { h } from "./dom.js";
import { newKey, send } from "./request.js";
import { may } from "./signin.js";

// by context and tool call: { mode, error, invalid, isTouched, isSending, isSent, outcome, key, body, form, show }
// and the values of fields
const drafts = new Map();
let name; // the selected context

export function selectCalls(context) {
  name = context;
}

// waitsFor returns what the user can give to an item that waits: "approval", "answer", or undefined.
export function waitsFor({ content: { entry_type: type } }) {
  if (type.type !== "tool_use" || !type.tool_call_id) return undefined;
  if (type.status === "pending_approval" && type.approval) return may("approve") ? "approval" : undefined;
  if (type.status === "pending_client" && type.question) return may("write") ? "answer" : undefined;
  return undefined;
}

// callForm returns the form of a call. define receives its tools and returns { views, submits }: by mode,
// the content of the form and what submits it. Each element that can have the focus has a data-key, by
// which the focus survives an update.
export function callForm(id, label, define) {
  const context = name;
  const at = `${context} ${id}`;
  const draft = drafts.get(at) ?? { mode: "" };
  drafts.set(at, draft);
  const form = h("form", { class: "call-form", "aria-label": label });

  const show = (focus) => {
    form.replaceChildren(...views[draft.mode]());
    if (focus) form.querySelector(`[data-key="${focus}"]`)?.focus();
  };
  const enter = (mode, focus) => {
    Object.assign(draft, { mode, error: "", isTouched: true });
    show(focus);
  };
  // An update of the card may replace the form while it sends, so the newest one shows the outcome.
  Object.assign(draft, { form, show });
  const fail = (error, focus, key) => {
    Object.assign(draft, { error, invalid: key, isSending: false });
    draft.show(focus);
  };
  // post sends the JSON of an event. The log shows its effect.
  const post = async (body, focus) => {
    if (draft.isSending || draft.isSent) return;
    // The same key for another event would be rejected.
    if (draft.body !== body) Object.assign(draft, { body, key: newKey() });
    const sending = send(context, body, draft.key);
    draft.outcome = sending.then(() => true, () => false);
    Object.assign(draft, { error: "", isTouched: true, isSending: true });
    show(focus);
    try {
      await sending;
      Object.assign(draft, { isSending: false, isSent: true });
      draft.show(draft.form.contains(document.activeElement) && focus);
    } catch (error) {
      fail(`Not sent: ${error.message}`, draft.form.contains(document.activeElement) && focus);
    }
  };

  const isBusy = () => draft.isSending || draft.isSent;
  const button = (key, text, onclick, type = "button") =>
    h("button", { type, class: type === "submit" ? "" : "quiet", dir: "auto", "data-key": key, "aria-disabled": isBusy() && "true", onclick: (event) => (isBusy() ? event.preventDefault() : onclick?.()) }, text);
  const problem = () => h("p", { class: "problem", role: "alert", id: `problem-${id}` }, draft.error);
  const cancel = (focus) => button("cancel", "Cancel", () => enter("", focus));
  const state = (waits) => (draft.isSending ? "Sending…" : draft.isSent ? "Sent. It takes effect as soon as a worker records it." : waits);
  // field returns an element whose value is draft[key].
  const field = (tag, key, properties, ...children) => {
    const isInvalid = draft.error && (!draft.invalid || draft.invalid === key);
    const element = h(tag, {
      "data-key": key, dir: "auto", "aria-invalid": isInvalid ? "true" : null, "aria-describedby": `problem-${id}`, autocomplete: "off", ...properties,
      oninput: (event) => Object.assign(draft, { [key]: event.target.value, isTouched: true }),
    }, ...children);
    element.value = draft[key] ?? "";
    return element;
  };

  const { views, submits } = define({ draft, show, enter, fail, post, button, problem, cancel, state, field });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    submits[draft.mode]();
  });
  form.addEventListener("keydown", (event) => {
    const isText = event.target.matches("textarea");
    const isShort = isText && "enter" in event.target.dataset;
    if (event.key === "Enter" && isText && !event.isComposing && (event.ctrlKey || event.metaKey || (isShort && !event.shiftKey))) {
      event.preventDefault();
      form.requestSubmit();
    } else if (event.key === "Escape" && (draft.mode || event.target.matches("textarea, input, select"))) {
      event.stopPropagation(); // elsewhere Escape stops the answer
      if (draft.mode && !isBusy()) enter("", draft.mode);
    }
  });
  show();
  return form;
}

// lostNote returns a note for a call that another client answered while the user was about to; else null.
export function lostNote(id) {
  const draft = drafts.get(`${name} ${id}`);
  if (!draft?.isTouched || draft.isSent) return null;
  const note = h("p", { class: "note problem", role: "alert" });
  Promise.resolve(draft.outcome).then((isSent) => {
    if (isSent) return;
    note.textContent = "Another client was faster. What you entered was not sent.";
    const card = note.closest("details");
    if (card) card.open = true;
  });
  return note;
}
