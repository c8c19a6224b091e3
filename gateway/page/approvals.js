// The form that approves or denies a tool call.

import { callForm } from "./callform.js";
import { h } from "./dom.js";
import { time } from "./time.js";
import { visible } from "./visible.js";

export function approvalForm({ tool_call_id: id, tool_name: tool, approval }) {
  return callForm(id, `Approval of ${tool}`, ({ draft, enter, fail, post, button, problem, cancel, state, field }) => {
    const shown = visible(approval.arguments ?? "{}"); // the same JSON value
    // parameters are JSON text: JSON.parse would round numbers.
    const decide = (decision, focus, parameters) => {
      const event = JSON.stringify({ _tag: "ApprovalDecidedEvent", toolCallId: id, decidedBy: "page", ...decision });
      return post(parameters ? `${event.slice(0, -1)},"parameters":${parameters}}` : event, focus);
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
        return decide({ decision: "approve" }, "approve", draft.text === shown ? undefined : draft.text);
      },
      deny: () => decide({ decision: "deny", ...(draft.reason?.trim() ? { reason: draft.reason.trim() } : {}) }, "deny"),
    };
    const views = {
      "": () => [
        h("p", { class: "until" }, state(["Waits for approval", time(approval.expires_at, " until ")])),
        problem(),
        h("div", { class: "buttons" },
          button("approve", "Approve", null, "submit"),
          button("deny", "Deny…", () => enter("deny", "reason")),
          button("edit", "Edit…", () => {
            draft.text ??= shown;
            enter("edit", "text");
          })),
      ],
      edit: () => [
        h("label", null, h("span", null, "Arguments to approve, as JSON"), field("textarea", "text", { class: "code", rows: Math.min(16, 1 + (draft.text ?? "").split("\n").length), spellcheck: "false" })),
        problem(),
        h("div", { class: "buttons" }, button("approve", "Approve with changes", null, "submit"), cancel("edit"), h("span", { class: "hint" }, "Ctrl+Enter approves · Esc cancels")),
      ],
      deny: () => [
        h("label", null, h("span", null, "Reason for the model, optional"), field("input", "reason", { type: "text", maxlength: 1000 })),
        problem(),
        h("div", { class: "buttons" }, button("deny", "Deny", null, "submit"), cancel("deny"), h("span", { class: "hint" }, "Enter denies · Esc cancels")),
      ],
    };
    return { views, submits };
  });
}
