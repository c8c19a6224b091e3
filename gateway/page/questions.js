// The form that sends the result of a client's tool call.

import { callForm } from "./callform.js";
import { h } from "./dom.js";
import { visible } from "./visible.js";

export function questionForm({ tool_call_id: id, tool_name: tool, question }) {
  const { fields, isOne } = formOf(question);
  const suggested = isOne ? choices(question) : [];
  // The texts of the call by what its fields show.
  const exact = new Map([...fields.map(({ initial }) => initial), ...suggested].map((text) => [visible(text), text]));
  return callForm(id, `Answer to ${tool}`, ({ draft, enter, fail, post, button, problem, cancel, state, field }) => {
    const respond = (result, focus) => post(`{"_tag":"ToolResultEvent","toolCallId":${JSON.stringify(id)},${result}}`, focus);
    const submits = {
      "": () => {
        const members = [];
        for (const f of fields) {
          const entered = draft[f.key] ?? f.initial;
          const text = exact.get(entered) ?? entered.trim();
          const { json, error } = text ? f.read(text) : { error: f.isRequired && "missing" };
          if (error) return fail(`${f.label}: ${error}`, f.key, f.key);
          if (isOne) return respond(`"value":${json}`, "send");
          if (json) members.push(`${JSON.stringify(f.name)}:${json}`);
        }
        return respond(`"value":{${members.join(",")}}`, "send");
      },
      json: () => {
        const { json, error } = readJSON((draft.json ?? "").trim());
        return error ? fail(error, "json") : respond(`"value":${json}`, "send");
      },
      decline: () => {
        const reason = draft.reason?.trim();
        return respond(`"isError":true,"error":${JSON.stringify(`the user declined to answer${reason ? `: ${reason}` : ""}`)}`, "decline");
      },
    };
    const views = {
      "": () => [
        h("p", { class: "until" }, state("Waits for your answer")),
        ...fields.map((f) => {
          draft[f.key] ??= f.options ? f.initial : visible(f.initial);
          const about = [f.label, f.isRequired ? "" : " (optional)"];
          return h("label", null, h("span", { dir: "auto" }, about), f.note && h("span", { class: "hint", dir: "auto" }, f.note),
            f.options
              ? field("select", f.key, { required: false }, h("option", { value: "" }, "Choose…"), f.options.map(([value, text]) => h("option", { value }, text)))
              : field("textarea", f.key, { rows: f.isLong ? 3 : 1, class: f.isCode && "code", spellcheck: f.isCode && "false", "data-enter": !f.isLong }));
        }),
        suggested.length > 0 && h("div", { class: "buttons choices", role: "group", "aria-label": "Suggested answers" }, suggested.map((text, i) => button(`choice${i}`, text, () => {
          draft[fields[0].key] = visible(text);
          enter("", fields[0].key);
        }))),
        problem(),
        h("div", { class: "buttons" },
          button("send", "Send", null, "submit"),
          button("decline", "Decline…", () => enter("decline", "reason")),
          button("json", "JSON…", () => enter("json", "json")),
          h("span", { class: "hint" }, fields.some((f) => f.isLong) ? "Ctrl+Enter sends" : "Enter sends · Shift+Enter inserts a line break")),
      ].filter(Boolean),
      json: () => [
        h("label", null, h("span", null, "Result of the call, as JSON"), field("textarea", "json", { class: "code", rows: 5, spellcheck: "false" })),
        problem(),
        h("div", { class: "buttons" }, button("send", "Send", null, "submit"), cancel("json"), h("span", { class: "hint" }, "Ctrl+Enter sends · Esc cancels")),
      ],
      decline: () => [
        h("label", null, h("span", null, "Reason for the model, optional"), field("input", "reason", { type: "text", maxlength: 1000 })),
        problem(),
        h("div", { class: "buttons" }, button("decline", "Decline", null, "submit"), cancel("decline"), h("span", { class: "hint" }, "Enter declines · Esc cancels")),
      ],
    };
    return { views, submits };
  });
}

// asked returns the elements that show the arguments of a call.
export function asked(question, output) {
  const given = argumentsOf(question);
  const texts = Object.entries(given).filter(([, value]) => typeof value === "string");
  const isComplete = texts.length > 0 && texts.length + (formOf(question).isOne && choices(question).length > 0) === Object.keys(given).length;
  return [
    ...texts.map(([name, text]) => h("section", { class: "asked" }, texts.length > 1 && h("h2", { dir: "auto" }, name), h("p", { class: "plain", dir: "auto" }, text))),
    !isComplete && question.arguments && h("section", null, h("h2", null, "Arguments"), output(question.arguments)),
    texts.length === 0 && question.description && h("p", { class: "note", dir: "auto" }, question.description),
  ].filter(Boolean);
}

function argumentsOf({ arguments: text }) {
  return objectOf(text && JSON.parse(text));
}

// Models write schemas, so any member can have any type.
const objectOf = (value) => (typeof value === "object" && value && !Array.isArray(value) ? value : {});
const listOf = (value) => (Array.isArray(value) ? value : []);
const textOf = (value) => (typeof value === "string" ? value : "");

// choices are the answers that a call suggests: its first argument that is a list of texts.
function choices(question) {
  return Object.values(argumentsOf(question)).find((value) => Array.isArray(value) && value.length > 0 && value.every((text) => typeof text === "string")) ?? [];
}

const schemaNames = ["requestedSchema", "responseSchema", "schema"];
const answerNames = ["answer", "result", "response"];

// formOf describes the form for the result of a call. isOne: the result is the value of its only field, else
// an object. A schema of the result is an argument like "requestedSchema". Otherwise, the fields are the
// properties in the schema of the tool that the arguments lack, or one text if they lack none.
function formOf(question) {
  const given = argumentsOf(question);
  const requested = schemaNames.map((name) => given[name]).find((value) => value?.type || value?.enum);
  const schema = objectOf(copyOf(requested ?? question.schema ?? {}));
  let open = Object.entries(objectOf(schema.properties)).filter(([name]) => requested || !(name in given));
  let isOne = !requested && open.length === 1 && answerNames.includes(open[0][0]);
  if (open.length === 0) {
    open = [["answer", requested ? { title: "Answer", ...schema } : { title: "Answer", type: "string" }]];
    isOne = true;
  }
  const fields = open.map(([name, property], i) => {
    const { title, description, default: initial } = objectOf(property);
    const field = fieldOf(objectOf(property));
    return {
      key: `field${i}`, name, label: textOf(title) || name, note: textOf(description), isRequired: isOne || listOf(schema.required).includes(name),
      ...field, initial: initial === undefined ? "" : field.write(initial),
    };
  });
  return { fields, isOne };
}

const copyOf = (value) => JSON.parse(JSON.stringify(value)); // without JSON.rawJSON

// fieldOf returns { options, isLong, isCode, note, read, write }. read converts a text that is not empty to
// { json } or { error }; write is its inverse.
function fieldOf(schema) {
  const type = Array.isArray(schema.type) ? schema.type.find((type) => type !== "null") : schema.type;
  if (listOf(schema.enum).length > 0 && schema.enum.every((value) => value === null || typeof value !== "object")) {
    return { ...plain, options: schema.enum.map((value) => [JSON.stringify(value), String(value)]), read: (text) => ({ json: text }), write: JSON.stringify };
  }
  switch (type) {
    case "boolean":
      return { ...plain, options: [["true", "Yes"], ["false", "No"]], read: (text) => ({ json: text }), write: String };
    case "string":
      return { ...plain, read: (text) => ({ json: JSON.stringify(text), error: textError(schema, text) }) };
    case "integer":
    case "number":
      return { ...plain, read: (text) => ({ json: text, error: numberError(schema, type, text) }) };
    case "array":
      if (schema.items?.type === "string") {
        return {
          ...plain, isLong: true, note: [textOf(schema.description), "One per line"].filter(Boolean).join(" · "),
          read: (text) => {
            const lines = text.split("\n").map((line) => line.trim()).filter(Boolean);
            return { json: JSON.stringify(lines), error: linesError(schema, lines) };
          },
          write: (value) => [value].flat().join("\n"),
        };
      }
  }
  return { ...plain, isLong: true, isCode: true, note: [textOf(schema.description), "JSON"].filter(Boolean).join(" · "), read: readJSON, write: (value) => JSON.stringify(value, null, 2) };
}

const plain = { write: String };

function readJSON(text) {
  try {
    JSON.parse(text);
    return { json: text }; // the parsed value would have rounded numbers
  } catch (error) {
    return { error: `not valid JSON: ${error.message}` };
  }
}

function textError({ minLength = 0, maxLength = Infinity, pattern }, text) {
  const length = [...text].length;
  if (length < minLength) return `at least ${minLength} characters`;
  if (length > maxLength) return `at most ${maxLength} characters`;
  try {
    if (pattern !== undefined && !new RegExp(pattern, "u").test(text)) return `must match ${pattern}`;
  } catch {
    // The pattern is for another dialect.
  }
}

function numberError({ minimum = -Infinity, maximum = Infinity }, type, text) {
  if (!/^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(text)) return "not a number";
  if (type === "integer" && !/^-?\d+$/.test(text)) return "not a whole number";
  if (Number(text) < minimum) return `at least ${minimum}`;
  if (Number(text) > maximum) return `at most ${maximum}`;
}

function linesError({ items, minItems = 0, maxItems = Infinity }, lines) {
  if (lines.length < minItems) return `at least ${minItems} lines`;
  if (lines.length > maxItems) return `at most ${maxItems} lines`;
  const allowed = listOf(items.enum);
  const odd = allowed.length > 0 && lines.find((line) => !allowed.includes(line));
  return odd ? `${odd} is not one of ${allowed.join(", ")}` : undefined;
}
