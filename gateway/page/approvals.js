// The forms that approve or deny tool calls. What the user has typed survives an update of the card.

import { h } from "./dom.js";
import { newKey, send } from "./request.js";

// by context and tool call: { mode, text, reason, error, isSending, key, body }
const drafts = new Map();
let name; // the selected context

export function selectApprovals(context) {
  name = context;
}

// isWaiting reports whether an item waits for an approval that this page can give.
export function isWaiting({ content: { entry_type: type } }) {
  return type.type === "tool_use" && type.status === "pending_approval" && Boolean(type.approval && type.tool_call_id);
}

// approvalForm returns the form of a call that waits. Each element that can have the focus has a
// data-key, by which the focus survives an update.
export function approvalForm({ tool_call_id: id, tool_name: tool, approval }) {
  const at = `${name} ${id}`;
  const draft = drafts.get(at) ?? { mode: "" };
  drafts.set(at, draft);
  const context = name;
  const form = h("form", { class: "approval", "aria-label": `Approval of ${tool}` });

  const show = (focus) => {
    form.replaceChildren(...views[draft.mode]());
    if (focus) form.querySelector(`[data-key="${focus}"]`)?.focus();
  };
  const enter = (mode, focus) => {
    Object.assign(draft, { mode, error: "" });
    show(focus);
  };
  const fail = (error, focus) => {
    Object.assign(draft, { error, isSending: false });
    show(focus);
  };

  // parameters are JSON text: JSON.parse would round numbers.
  const decide = async (decision, focus, parameters) => {
    if (draft.isSending) return;
    const event = JSON.stringify({ _tag: "ApprovalDecidedEvent", toolCallId: id, decidedBy: "page", ...decision });
    const body = parameters ? `${event.slice(0, -1)},"parameters":${parameters}}` : event;
    // The same key for another decision would be rejected.
    if (draft.body !== body) Object.assign(draft, { body, key: newKey() });
    Object.assign(draft, { error: "", isSending: true });
    show(focus);
    try {
      await send(context, body, draft.key); // the log shows the decision
    } catch (error) {
      fail(`Not sent: ${error.message}`, form.contains(document.activeElement) && focus);
    }
  };
  const submits = {
    "": () => decide({ decision: "approve" }, "approve"),
    edit: () => {
      let parameters;
      try {
        parameters = JSON.parse(draft.text);
      } catch (error) {
        return fail(`Not valid JSON: ${error.message}`, "text");
      }
      if (typeof parameters !== "object" || !parameters || Array.isArray(parameters)) return fail("The arguments must be a JSON object.", "text");
      return decide({ decision: "approve" }, "approve", draft.text);
    },
    deny: () => decide({ decision: "deny", ...(draft.reason?.trim() ? { reason: draft.reason.trim() } : {}) }, "deny"),
  };

  const button = (key, label, onclick, type = "button") =>
    h("button", { type, class: type === "submit" ? "" : "quiet", "data-key": key, "aria-disabled": draft.isSending && "true", onclick: (event) => draft.isSending ? event.preventDefault() : onclick?.() }, label);
  const problem = () => h("p", { class: "problem", role: "alert", id: `problem-${id}` }, draft.error);
  const cancel = (focus) => button("cancel", "Cancel", () => enter("", focus));
  const field = (tag, key, properties) => {
    const element = h(tag, {
      "data-key": key, "aria-invalid": draft.error ? "true" : null, "aria-describedby": `problem-${id}`, autocomplete: "off", ...properties,
      oninput: (event) => { draft[key] = event.target.value; },
    });
    element.value = draft[key] ?? "";
    return element;
  };
  const views = {
    "": () => [
      h("p", { class: "until" }, draft.isSending ? "Sending…" : "Waits for approval", !draft.isSending && until(approval.expires_at)),
      problem(),
      h("div", { class: "buttons" },
        button("approve", "Approve", null, "submit"),
        button("deny", "Deny…", () => enter("deny", "reason")),
        button("edit", "Edit…", () => {
          draft.text ??= approval.arguments ?? "{}";
          enter("edit", "text");
        })),
    ],
    edit: () => [
      h("label", null, h("span", null, "Arguments to approve, as JSON"), field("textarea", "text", { rows: Math.min(16, 1 + (draft.text ?? "").split("\n").length), spellcheck: "false" })),
      problem(),
      h("div", { class: "buttons" }, button("approve", "Approve with changes", null, "submit"), cancel("edit"), h("span", { class: "hint" }, "Ctrl+Enter approves · Esc cancels")),
    ],
    deny: () => [
      h("label", null, h("span", null, "Reason for the model, optional"), field("input", "reason", { type: "text", maxlength: 1000 })),
      problem(),
      h("div", { class: "buttons" }, button("deny", "Deny", null, "submit"), cancel("deny"), h("span", { class: "hint" }, "Enter denies · Esc cancels")),
    ],
  };

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    submits[draft.mode]();
  });
  form.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target.matches("textarea")) {
      event.preventDefault();
      form.requestSubmit();
    } else if (event.key === "Escape" && draft.mode && !draft.isSending) {
      event.stopPropagation(); // elsewhere Escape stops the answer
      enter("", draft.mode);
    }
  });
  show();
  return form;
}

// until returns when an approval expires, with the day unless it is today.
function until(expiresAt) {
  if (!expiresAt) return null;
  const at = new Date(expiresAt);
  const day = at.toDateString() === new Date().toDateString() ? {} : { day: "numeric", month: "short" };
  return h("time", { datetime: expiresAt, title: at.toLocaleString() }, ` until ${at.toLocaleString([], { ...day, hour: "2-digit", minute: "2-digit" })}`);
}
