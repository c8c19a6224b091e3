// Shows formulas, which Markdown has between $$ and $$, \[ and \], or \( and \). A single $ stands for itself, because
// it also stands for prices and variables.

import { scriptURL } from "./scripts.js";

const MAX_CHARS = 2000; // longer formulas stay source
const BUDGET_MS = 50;
const MAX_TEXT = 50_000; // characters; longer texts have no formulas, since the time to find them is quadratic

const block = String.raw` {0,3}(\$\$(?:[^\n]|\n(?!\s*\n)){1,${MAX_CHARS}}?\$\$|\\\[(?:[^\n]|\n(?!\s*\n)){1,${MAX_CHARS}}?\\\])[ \t]*(?:\n|$)`;
const blockHere = new RegExp(`^${block}`);
const blockBelow = new RegExp(`\n${block}`);
const inline = new RegExp(String.raw`^(?:\$\$[^]{1,${MAX_CHARS}}?\$\$|\\\([^]{1,${MAX_CHARS}}?\\\))`);

// A short macro that repeats its argument makes formulas of any size.
const definition = /\\(?:[egx]?def|let|futurelet|(?:new|renew|provide)command)(?![A-Za-z])/;

export const hasFormulas = (text) => text.length <= MAX_TEXT && /\$\$|\\[[(]/.test(text);

// formulas are extensions of Marked. They render a formula as its source, a code element of class "math" with the delimiters.
export const formulas = (escape) => [
  {
    name: "formulaBlock", level: "block",
    start: (text) => text.split(/\n[ \t]*\n/, 1)[0].match(blockBelow)?.index, // of this paragraph
    tokenizer(text) {
      const [raw, source] = blockHere.exec(text) ?? [];
      return raw && { type: "formulaBlock", raw, source };
    },
    renderer: ({ source }) => `<p><code class="math">${escape(source)}</code></p>`,
  },
  {
    name: "formula", level: "inline",
    start: (text) => text.match(/\$\$|\\\(/)?.index,
    tokenizer(text) {
      const [raw] = inline.exec(text) ?? [];
      return raw && { type: "formula", raw };
    },
    renderer: ({ raw }) => `<code class="math">${escape(raw)}</code>`,
  },
];

let spent = 0; // milliseconds, on formulas in this task

// typeset replaces the source of a formula by MathML: at once if the library is loaded, and after other tasks if formulas have
// taken BUDGET_MS, since a large one takes 200 ms. An invalid formula stays source, and one that defines macros.
export function typeset(code) {
  if (!globalThis.temml) return load().then(() => typeset(code), () => undefined);
  if (spent > BUDGET_MS) return setTimeout(typeset, 0, code);
  if (spent === 0) setTimeout(() => (spent = 0));
  const began = performance.now();
  show(code);
  spent += performance.now() - began;
}

let loading;

function load() {
  return (loading ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    Object.assign(script, { src: scriptURL("temml"), onload: resolve, onerror: reject });
    document.head.append(script);
  }).catch((error) => {
    loading = undefined;
    throw error;
  }));
}

function show(code) {
  const source = code.textContent;
  if (definition.test(source)) return;
  const formula = document.createElement("span");
  const displayMode = !source.startsWith("\\(");
  formula.className = displayMode ? "formula display" : "formula";
  if (displayMode) formula.tabIndex = 0; // it scrolls
  try {
    // The library creates MathML elements and text; commands with addresses and attributes are invalid.
    globalThis.temml.render(source.slice(2, -2), formula, { displayMode, throwOnError: true, trust: false, maxSize: [20, 200] });
  } catch {
    return;
  }
  code.replaceWith(formula);
}
