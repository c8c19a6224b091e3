// Shows formulas, which Markdown has between $$ and $$, \[ and \], or \( and \). A single $ stands for itself, because
// it also stands for prices and variables.

import { scriptURL } from "./scripts.js";

const MAX_CHARS = 2000; // longer formulas stay source

const block = new RegExp(String.raw`^ {0,3}(\$\$(?:(?!\n\s*\n)[^]){1,${MAX_CHARS}}?\$\$|\\\[(?:(?!\n\s*\n)[^]){1,${MAX_CHARS}}?\\\])[ \t]*(?:\n|$)`);
const inline = new RegExp(String.raw`^(?:\$\$[^]{1,${MAX_CHARS}}?\$\$|\\\([^]{1,${MAX_CHARS}}?\\\))`);

export const hasFormulas = (text) => /\$\$|\\[[(]/.test(text);

// formulas are extensions of Marked. They render a formula as its source, a code element of class "math" with the delimiters.
export const formulas = (escape) => [
  {
    name: "formulaBlock", level: "block",
    start: (text) => text.match(/\n {0,3}(?:\$\$|\\\[)/)?.index,
    tokenizer(text) {
      const [raw, source] = block.exec(text) ?? [];
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

// typeset replaces the source of a formula by MathML as soon as the library is loaded. An invalid formula stays source.
export function typeset(code) {
  if (globalThis.temml) show(code);
  else load().then(() => show(code), () => undefined);
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
