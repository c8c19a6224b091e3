// The dialog with the usage and the settings of the selected context.

import { $, h } from "./dom.js";
import { onSubmit } from "./form.js";
import { dollars } from "./money.js";
import { newKey, request, send } from "./request.js";
import { may } from "./signin.js";

const POLICIES = {
  interrupt: "stops it and starts a new answer", queue: "waits for its end", steer: "joins its next step", reject: "is rejected",
};
const COMPACTIONS = {
  "": "drop results of tools, then summarise", summarise: "summarise", truncate: "remove the oldest messages", off: "off",
};

// The fields, by the event that sets them: read(config) gives its values, and event(values, config) the event. What
// isAbridged cannot be edited.
const GROUPS = [
  {
    title: "Model",
    fields: {
      providerId: { label: "Provider", placeholder: "default" }, model: { label: "Model", list: "models", placeholder: "default" },
      temperature: { label: "Temperature", type: "number", min: 0, max: 2, step: "any" }, maxTokens: { label: "Maximum tokens", type: "number", min: 1 },
    },
    read: ({ primary: { isDefault, ...primary } }) => (isDefault ? {} : primary),
    event: ({ providerId, model, temperature, maxTokens }, { primary: { isDefault, ...primary } }) => ({
      _tag: "SetProviderConfigEvent",
      ...(!providerId && !model ? { useDefault: true } : {
        ...(providerId === primary.providerId ? primary : {}), providerId, model, temperature: number(temperature), maxTokens: number(maxTokens),
      }),
    }),
  },
  {
    title: "Instructions",
    fields: { content: { label: "System prompt", tag: "textarea", rows: 4, dir: "auto" } },
    read: ({ prompt }) => ({ content: prompt }),
    event: ({ content }) => ({ _tag: "SystemPromptEvent", content }),
  },
  {
    title: "Delivery",
    fields: { policy: { label: "A message while an answer runs", choices: POLICIES } },
    read: ({ delivery }) => delivery,
    event: ({ policy }, { delivery }) => ({ ...delivery, _tag: "SetDeliveryPolicyEvent", policy }),
  },
  {
    title: "Tools",
    fields: {
      tools: { label: "Tools, one per line", tag: "textarea", rows: 3, class: "code", spellcheck: "false", placeholder: "mcp:files/*" },
      approve: { label: "Calls that require an approval, one per line", tag: "textarea", rows: 2, class: "code", spellcheck: "false", placeholder: "mcp:files/write_*" },
    },
    // The state has no schemas of large tools.
    isAbridged: ({ tools }) => tools?.tools?.some((tool) => tool.name && !tool.description && !tool.parameters),
    read: ({ tools }) => ({ tools: lines(tools?.tools), approve: lines(tools?.approve) }),
    event: ({ tools, approve }, config) => ({ ...config.tools, _tag: "SetToolsEvent", tools: parseLines(tools), approve: parseLines(approve) }),
  },
  {
    title: "Budget of the conversation",
    fields: { tokens: { label: "Tokens", type: "number", min: 1 }, dollars: { label: "US dollars", type: "number", min: 0, step: "any" } },
    read: ({ budget }) => ({ tokens: budget?.tokens, dollars: budget?.costMicros != null ? budget.costMicros / 1e6 : undefined }),
    event: ({ tokens, dollars: cost }) => ({ _tag: "BudgetSetEvent", tokens: number(tokens), costMicros: cost === "" ? undefined : Math.round(Number(cost) * 1e6) }),
  },
  {
    title: "When the model's context is full",
    fields: { strategy: { label: "Compaction", choices: COMPACTIONS }, triggerPercent: { label: "Start at percent", type: "number", min: 1, max: 100, placeholder: "80" } },
    read: ({ compaction }) => ({ strategy: strategyOf(compaction?.strategies), triggerPercent: compaction?.triggerPercent }),
    event: ({ strategy, triggerPercent }, { compaction }) => ({
      ...compaction, _tag: "SetCompactionEvent", triggerPercent: number(triggerPercent),
      strategies: strategy === "" ? undefined : strategy === "off" ? [] : strategy === OTHER ? compaction.strategies : [strategy],
    }),
  },
];

const OTHER = "other";

const strategyOf = (strategies) => (!strategies ? "" : strategies.length === 0 ? "off" : strategies.length === 1 && COMPACTIONS[strategies[0]] ? strategies[0] : OTHER);
const number = (text) => (text === "" ? undefined : Number(text));

// lines writes names as they are, and objects as JSON.
const lines = (list = []) => list.map((item) => `${typeof item === "string" ? item : JSON.stringify(item)}\n`).join("");
const parseLines = (text) => text.split("\n").map((line) => line.trim()).filter(Boolean).map((line) => (line.startsWith("{") ? JSON.parse(line) : line));

export class Settings {
  #name;
  #config;
  #groups = []; // { group, inputs, before }
  #entries;

  // entries returns the transcript, which has the system prompt.
  constructor(entries) {
    this.#entries = entries;
    $("usage-and-settings").addEventListener("click", () => this.#open());
    onSubmit("settings", () => this.#save());
  }

  select(name) {
    this.#name = name;
    $("settings").close();
  }

  async #open() {
    const name = this.#name;
    $("settings-fields").replaceChildren();
    $("settings").querySelector("[role='alert']").textContent = "";
    $("usage").textContent = "Loading…";
    this.#groups = [];
    $("settings").showModal();
    try {
      const response = await request(`contexts/${encodeURIComponent(name)}/state`);
      const state = await response.json();
      if (name !== this.#name) return;
      $("usage").textContent = used(state);
      this.#show({ ...state.config, prompt: promptOf(this.#entries()) });
    } catch (error) {
      if (name === this.#name) $("usage").textContent = `Not loaded: ${error.message}`;
    }
  }

  #show(config) {
    this.#config = config;
    this.#groups = GROUPS.map((group) => {
      const before = group.read(config);
      const inputs = Object.entries(group.fields).map(([key, properties]) => input(key, properties, before[key]));
      return { group, inputs, before: valuesOf(inputs) };
    });
    $("settings-fields").replaceChildren(...this.#groups.map(({ group, inputs }) =>
      h("fieldset", { disabled: !may("write") || group.isAbridged?.(config) }, h("legend", null, group.title), inputs.map((element) => h("label", null, h("span", null, group.fields[element.name].label), element)))));
  }

  // #save sends the events of the groups that changed.
  async #save() {
    const events = this.#groups.flatMap(({ group, inputs, before }) => {
      const values = valuesOf(inputs);
      return JSON.stringify(values) === JSON.stringify(before) ? [] : [group.event(values, this.#config)];
    });
    if (events.length === 0) return;
    await send(this.#name, JSON.stringify(events), newKey()).catch((error) => {
      const [, problem] = error.message.split(`${error.tag}.${error.field}: `);
      if (!problem) throw error;
      const [inside] = error.field.split(/[.[]/);
      const input = this.#groups.flatMap(({ inputs }) => inputs).find(({ name }) => name === inside);
      input?.focus();
      throw new Error(`${input ? input.labels[0].firstChild.textContent : error.field}: ${problem}`);
    });
  }
}

const valuesOf = (inputs) => Object.fromEntries(inputs.map(({ name, value }) => [name, value.trim()]));

function input(name, { label, tag = "input", choices, ...properties }, value = "") {
  const all = choices && { ...choices, ...(value in choices ? {} : { [value]: value === OTHER ? "as set elsewhere" : value }) };
  const element = all
    ? h("select", { name }, Object.entries(all).map(([key, text]) => h("option", { value: key }, text)))
    : h(tag, { name, type: tag === "input" && "text", autocomplete: "off", ...properties });
  element.value = value;
  return element;
}

// promptOf returns the system prompt, whose removal is an entry, too.
function promptOf(entries) {
  const prompt = entries.findLast(({ content: { entry_type: { subtype } } }) => subtype === "prompt")?.content.content ?? "";
  return prompt === "System prompt removed" ? "" : prompt;
}

// used describes the usage of a context.
function used({ turns, model, usage = {}, contextTokens, contextWindow }) {
  const tokens = (n = 0) => n.toLocaleString("en");
  return [
    `${turns} turn${turns === 1 ? "" : "s"}`,
    `${tokens(usage.inputTokens)} tokens in`, `${tokens(usage.outputTokens)} out`,
    usage.costMicros && `${dollars(usage.costMicros)}${usage.unpriced ? " and attempts without a known price" : ""}`,
    contextTokens && `the model reads ${tokens(contextTokens)}${contextWindow ? ` of ${tokens(contextWindow)}` : ""} tokens`,
    model,
  ].filter(Boolean).join(" · ");
}
