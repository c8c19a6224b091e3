// Creates the elements of entries. reducer/transcript defines their types.

import { rejectedMessage } from "./actions.js";
import { approvalForm } from "./approvals.js";
import { lostNote, waitsFor } from "./callform.js";
import { $, h, message } from "./dom.js";
import { isShared } from "./link.js";
import { render, StreamingMarkdown } from "./markdown.js";
import { dollars } from "./money.js";
import { asked, questionForm } from "./questions.js";
import { sharedFile } from "./share.js";
import { time } from "./time.js";
import { visible } from "./visible.js";

// build returns { element, streaming } for an item of a transcript. streaming is the
// StreamingMarkdown of an entry that streams. A read-only entry has no forms.
export function build({ content: entry }, { isReadOnly = false } = {}) {
  const type = entry.entry_type.type;
  const parts = partsOf(entry, views[type] ?? views.system_message, isReadOnly);
  const names = ["entry", type.replaceAll("_", "-"), parts.streaming && "streaming", parts.class];
  return { element: h("li", { class: names.filter(Boolean).join(" ") }, parts.children), streaming: parts.streaming };
}

// partsOf shows the JSON of an entry that its view cannot show, so that one entry does not hide the others.
function partsOf(entry, view, isReadOnly) {
  try {
    return view(entry, isReadOnly);
  } catch (error) {
    return { class: "warning", children: [h("details", null, h("summary", null, `This entry cannot be shown: ${error.message}`), output(entry))] };
  }
}

const views = {
  user_message: (entry) => ({
    children: [
      h("div", { class: "bubble" },
        entry.content && folded(h("div", { class: "plain", dir: "auto" }, message(entry.content)), entry.content),
        entry.attachments?.length && h("ul", { class: "attachments" }, entry.attachments.map(attachment))),
      time(entry.timestamp, h("span", { class: "visually-hidden" }, "You, ")),
    ],
  }),

  assistant_message: (entry) => {
    const { text, streaming } = prose(entry);
    return { streaming, children: [text, entry.partial && h("p", { class: "partial" }, "partial answer")] };
  },

  thinking: (entry) => {
    const { text, streaming } = prose(entry);
    return { streaming, children: [h("details", null, h("summary", null, streaming ? "Thinking…" : "Thought"), text), entry.partial && h("p", { class: "partial" }, "interrupted")] };
  },

  system_message: (entry) => {
    const { subtype, level } = entry.entry_type;
    if (subtype === "prompt") {
      return { children: [h("details", null, h("summary", null, "System prompt"), h("div", { class: "plain", dir: "auto" }, message(entry.content)))] };
    }
    if (["hook", "compacted", "rejected"].includes(subtype) && !rejectedMessage(entry) && entry.content.includes("\n")) {
      const [did, ...changes] = entry.content.split("\n");
      return { class: level === "warning" && "warning", children: [h("details", null, h("summary", { dir: "auto" }, did), h("div", { class: "plain", dir: "auto" }, message(changes.join("\n")))), time(entry.timestamp)] };
    }
    const line = output(entry.metadata?.line); // malformed input of an agent
    const rejected = rejectedMessage(entry);
    if (rejected) {
      return {
        class: "rejected-message",
        children: [h("p", { dir: "auto" }, entry.content.split("\n", 1)[0]), h("div", { class: "bubble plain", dir: "auto" }, message(rejected.content)), time(entry.timestamp)],
      };
    }
    return {
      class: level === "warning" && "warning",
      children: [line ? h("details", null, h("summary", { dir: "auto" }, entry.content), line) : h("p", { dir: "auto" }, entry.content), time(entry.timestamp)],
    };
  },

  error_message: (entry) => {
    const { kind, retryable } = entry.entry_type;
    const advice = adviceByKind[kind] ?? (retryable && "Try again later: the same request may succeed.");
    return {
      children: [h("div", null, h("p", { class: "plain", dir: "auto" }, entry.content), advice && h("p", { class: "advice" }, advice)), time(entry.timestamp)],
    };
  },

  token_usage_info: ({ entry_type: type, content }) => {
    const { model, input_tokens, cached_tokens, output_tokens, reasoning_tokens, estimated, cost_micros, duration_ms, steps, failed_attempts: failed, quirks } = type;
    const part = (tokens, word) => (tokens ? ` (${tokens.toLocaleString("en")} ${word})` : "");
    const figures = joinDots(
      model && h("bdi", null, model),
      input_tokens && `${estimated ? "~" : ""}${input_tokens.toLocaleString("en")} tokens in${part(cached_tokens, "cached")}`,
      output_tokens && `${estimated ? "~" : ""}${output_tokens.toLocaleString("en")} out${part(reasoning_tokens, "reasoning")}`,
      cost_micros != null && dollars(cost_micros),
      duration_ms && seconds(duration_ms),
      steps && `${steps} steps`,
      failed && `with ${failed} failed attempt${failed === 1 ? "" : "s"}`,
      quirks && h("span", { title: "What the worker repaired or worked around" }, `quirks: ${quirks.join(" ")}`),
    );
    return { children: [h("p", null, figures.length > 0 ? figures : content)] };
  },

  tool_use: (entry, isReadOnly) => {
    const { tool_name: name, status, duration_ms: ms, approval, action_type: action = { action: "other" } } = entry.entry_type;
    const { verb, target, body } = (actions[action.action] ?? actions.other)(action, entry, name);
    const waits = isReadOnly ? undefined : waitsFor({ content: entry });
    const parts = {
      approval: () => [labelled("Arguments", output(approval.arguments) ?? h("p", { class: "note" }, "none")), approvalForm(entry.entry_type)],
      answer: () => [...asked(entry.entry_type.question, output), questionForm(entry.entry_type)],
    }[waits]?.() ?? [body].flat().filter(Boolean);
    const lost = !waits && !isReadOnly && lostNote(entry.entry_type.tool_call_id);
    if (lost) parts.push(lost);
    const exit = action.action === "command_run" ? action.result?.exit_status : undefined;
    const line = [
      h("span", { class: "verb", dir: "auto" }, verb),
      h("code", { class: "target", dir: "auto" }, target),
      entry.progress && h("span", { class: "progress", dir: "auto" }, entry.progress),
      exit != null && h("span", { class: `exit ${exit === 0 ? "ok" : "bad"}` }, `exit ${exit}`),
      ms && h("span", { class: "took" }, seconds(ms)),
      h("span", { class: `status ${status ?? "created"}`, title: joinDots(statuses[status] ?? status, ms && seconds(ms)).join(""), role: "img", "aria-label": statuses[status] ?? status }),
    ];
    if (approval?.decision) parts.push(h("p", { class: "note decision", dir: "auto" }, decided(approval)));
    if (waits) return { class: "waiting", children: [h("div", { class: "card" }, h("div", { class: "line" }, line), h("div", { class: "card-body" }, parts))] };
    if (parts.length === 0) return { children: [h("div", { class: "card" }, h("div", { class: "line" }, line))] };
    if (entry.metadata) parts.push(h("details", { class: "metadata" }, h("summary", null, "Metadata"), output(entry.metadata)));
    const isOpen = action.action === "file_edit" || action.action === "plan_presentation" || action.action === "todo_management";
    return { children: [h("details", { class: "card", open: isOpen }, h("summary", { class: "line" }, line), h("div", { class: "card-body" }, parts))] };
  },
};

// decided describes a decision: "Approved with edited arguments by alice".
function decided({ decision, reason, decided_by: by, edited }) {
  const what = decision === "deny" ? "Denied" : edited ? "Approved with edited arguments" : "Approved";
  return [what, by && [" by ", h("bdi", null, by)], reason && `: ${reason}`].flat().filter(Boolean);
}

// adviceByKind is what to do about a failed request, by the kind of failure.
const adviceByKind = {
  configuration: "Add a key or change the settings: the error says which.",
  unauthorized: "Add a valid key for the provider: the error says whether one was sent.",
  quota: "Add credit: the account at the provider has no quota left.",
  context_too_long: "Start a new conversation, or choose a model with a larger context window.",
  content_filter: "Change the message: the provider's content filter rejected it.",
  model_not_found: "Choose another model: the provider does not have this one.",
  budget_exceeded: "Raise the budget, lower maxTokens, or wait for the next day if the budget is daily.",
  refused_by_hook: "Change the message: a hook of the operator refuses it or its answer.",
  hook_failed: "Try again later. If it fails again, the operator of the worker must repair the hook.",
};

// A message of more than LONG characters or LINES lines is folded.
const LONG = 2000;
const LINES = 24;

function folded(element, text) {
  if (text.length <= LONG && text.split("\n", LINES + 1).length <= LINES) return element;
  element.classList.add("folded");
  const button = h("button", { type: "button", class: "quiet fold", "aria-expanded": "false", onclick: () => {
    const isFolded = element.classList.toggle("folded");
    button.textContent = isFolded ? "Show all" : "Show less";
    button.setAttribute("aria-expanded", String(!isFolded));
  } }, "Show all");
  return [element, button];
}

function prose({ content, chunks }) {
  const text = h("div", { class: "prose" });
  if (!chunks) {
    text.append(render(content));
    return { text };
  }
  const streaming = new StreamingMarkdown(text);
  streaming.append(content + chunks.join(""));
  streaming.show();
  return { text, streaming };
}

const statuses = {
  created: "running", success: "done", failed: "failed",
  denied: "denied", timed_out: "timed out", pending_approval: "waiting for approval", pending_client: "waiting for an answer",
};

const actions = {
  file_read: ({ path, result }, { content }) => ({ verb: "Read", target: path ?? content, body: output(result) }),

  file_edit: ({ path, changes = [], result }, { content }) => ({
    verb: changes.length === 1 ? { write: "Write", delete: "Delete", rename: "Rename", edit: "Edit" }[changes[0].action] ?? "Edit" : "Edit",
    target: path ?? content,
    body: [...changes.map((change) => fileChange(change, changes.length > 1)), output(result)],
  }),

  command_run: ({ command, result }, { content }) => ({
    verb: "Run",
    target: firstLine(command ?? content),
    body: [command?.includes("\n") && h("pre", { class: "command", dir: "auto" }, command), output(result?.output ?? result)],
  }),

  search: ({ query, path, result }, { content }) => ({
    verb: "Search",
    target: query ? (path ? `${query} in ${path}` : query) : content,
    body: output(result),
  }),

  web_fetch: ({ url, result }, { content }) => ({ verb: "Fetch", target: url ?? content, body: output(result) }),

  todo_management: ({ todos = [], result }) => ({
    verb: "To do",
    target: `${todos.filter((todo) => isDone(todo)).length} of ${todos.length}`,
    body: [
      todos.length && h("ul", { class: "todos" }, todos.map((todo) =>
        h("li", { class: todo.status ?? "pending", dir: "auto" }, h("span", null, todo.content), todo.priority && h("span", { class: "priority" }, todo.priority),
          h("span", { class: "visually-hidden" }, ` (${todo.status ?? "pending"})`)))),
      output(result),
    ],
  }),

  plan_presentation: ({ plan, description, result }) => ({
    verb: "Plan",
    target: description ?? "",
    body: [plan && h("div", { class: "prose" }, render(visible(plan))), output(result)],
  }),

  tool: ({ arguments: args, result }, { content }, name) => ({
    verb: name,
    target: content === name ? "" : content,
    body: [args !== undefined && labelled("Arguments", output(args)), result !== undefined && labelled("Result", output(result))],
  }),

  other: ({ description, result }, { content }, name) => ({ verb: name ?? "Tool", target: description ?? content, body: output(result) }),
};

const isDone = (todo) => todo.status === "completed" || todo.status === "done";
const firstLine = (text = "") => text.split("\n", 1)[0];

const seconds = (ms) => (ms < 1000 ? `${ms} ms` : `${(ms / 1000).toFixed(1)} s`);

// Outputs are truncated to MAX_CHARS characters.
const MAX_CHARS = 100_000;

function output(value) {
  if (value === undefined || value === null || value === "") return null;
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
  const rest = text.length > MAX_CHARS && `\n… ${(text.length - MAX_CHARS).toLocaleString("en")} more characters`;
  return h("pre", { class: "output", tabindex: 0, dir: "auto" }, text.slice(0, MAX_CHARS), rest);
}

const labelled = (label, body) => h("section", null, h("h2", null, label), body);

function fileChange({ action, path, content, to, unified_diff: unified }, showPath) {
  const title = showPath && path && h("h2", { dir: "auto" }, path);
  switch (action) {
    case "edit":
      return h("section", null, title, diff(unified ?? ""));
    case "write":
      return h("section", null, title, diff((content ?? "").replace(/^/gm, "+")));
    case "rename":
      return h("section", null, title, h("p", { class: "note" }, "renamed to ", h("code", { dir: "auto" }, to)));
    default:
      return showPath && h("section", null, title, h("p", { class: "note" }, "deleted"));
  }
}

// diff renders a unified diff without its header, which would repeat the card.
function diff(text) {
  const lines = text.slice(0, MAX_CHARS).split("\n");
  if (lines.at(-1) === "") lines.pop();
  const start = lines.findIndex((line) => line.startsWith("@@"));
  return h("pre", { class: "diff", tabindex: 0, dir: "ltr" }, lines.slice(Math.max(0, start)).map((line) => {
    const kind = { "+": "add", "-": "del", "@": "hunk" }[line[0]];
    return h("span", { class: kind }, line + "\n");
  }));
}

// The types that the gateway serves as images and audio.
const imageTypes = ["image/png", "image/jpeg", "image/gif", "image/webp"];
const audioTypes = ["audio/wav", "audio/x-wav", "audio/wave", "audio/mpeg", "audio/mp3"];

function attachment({ name, media_type: type, size, url, event_id: id }) {
  const label = joinDots(h("bdi", null, name || "file"), type, size && bytes(size));
  const isWeb = /^https?:\/\//i.test(url ?? "");
  const href = isWeb ? url : !url && id && `contexts/${id.split(":", 1)}/events/${id}/attachment`;
  // Other files, and images that fail to load, show their name only.
  const isOwn = href && !isWeb;
  const image = isOwn && imageTypes.includes(type) &&
    h("img", { src: !isShared && href, alt: "", loading: "lazy", onerror: () => enlarger.remove() });
  const enlarger = image && h("button", { type: "button", class: "enlarge", "aria-label": `Enlarge ${name || "the picture"}`, onclick: () => enlarge(image) }, image);
  if (isOwn && isShared) return h("li", null, enlarger, sharedFile(href, name, image, label));
  const audio = isOwn && audioTypes.includes(type) && h("audio", { src: href, controls: true, preload: "none" });
  return h("li", null, enlarger, href ? h("a", { href, target: "_blank", rel: "noopener noreferrer" }, label) : label, audio);
}

function enlarge(image) {
  $("picture").querySelector("button").replaceChildren(image.cloneNode());
  $("picture").showModal();
}

// joinDots joins the nonempty parts with dots. Names are bdi elements, so their writing
// direction does not affect the surrounding text.
const joinDots = (...parts) => parts.filter(Boolean).flatMap((part, i) => (i > 0 ? [" · ", part] : [part]));

export function bytes(n) {
  if (n < 1024) return `${n} B`;
  return n < 1 << 20 ? `${(n / 1024).toFixed(0)} KiB` : `${(n / (1 << 20)).toFixed(1)} MiB`;
}
