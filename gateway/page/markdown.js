// Renders untrusted Markdown as inert elements. HTML is shown as source, only web and mail links
// are active, and images become links, so a message never triggers a request.

import { Marked, Tokenizer } from "./lib/marked/marked.esm.js";
import DOMPurify from "./lib/dompurify/purify.es.mjs";
import { copyButton } from "./copy.js";
import { h } from "./dom.js";
import { highlight, languageOf } from "./highlight.js";
import { formulas, hasFormulas, typeset } from "./math.js";

const entities = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
const escape = (text) => text.replace(/[&<>"']/g, (c) => entities[c]);
const isAllowed = (href) => /^(?:https?:\/\/|mailto:)/i.test(href);

// Deeper quotes, lists, emphases and links stay text: the stack and the time of the parser are limited.
const MAX_DEPTH = 32;
let depth = 0;

const bounded = (name) => function (...parameters) {
  if (depth === MAX_DEPTH) return undefined;
  depth++;
  try {
    return Tokenizer.prototype[name].apply(this, parameters);
  } finally {
    depth--;
  }
};

const options = {
  breaks: true,
  tokenizer: Object.fromEntries(["blockquote", "list", "emStrong", "del", "link", "reflink"].map((name) => [name, bounded(name)])),
  renderer: {
    html: ({ text, block }) => (block ? `<p class="raw">${escape(text.trimEnd())}</p>` : escape(text)),
    link: ({ href, raw }) => (isAllowed(href) ? false : escape(raw)), // false: the default rendering
    image: ({ href, text, raw }) => (isAllowed(href) ? `<a href="${escape(href)}">${escape(text || href)}</a>` : escape(raw)),
  },
};
const markdown = new Marked(options);
const markdownWithFormulas = new Marked(options, { extensions: formulas(escape) });

// Defense in depth: the renderer produces nothing else.
const allowed = {
  ALLOWED_TAGS: [
    "p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "pre", "code",
    "em", "strong", "del", "a", "table", "thead", "tbody", "tr", "th", "td", "input",
  ],
  ALLOWED_ATTR: ["href", "title", "class", "start", "align", "type", "checked", "disabled"],
  ALLOWED_URI_REGEXP: /^(?:https?:\/\/|mailto:)/i,
  ADD_URI_SAFE_ATTR: ["start", "align", "type"], // other attributes must match the expression
  ALLOW_DATA_ATTR: false,
  RETURN_DOM_FRAGMENT: true,
};

// render returns a DocumentFragment. Incomplete text has no colored code and no formulas.
export function render(text, { isIncomplete = false } = {}) {
  const fragment = DOMPurify.sanitize((hasFormulas(text) ? markdownWithFormulas : markdown).parse(text), allowed);
  for (const link of fragment.querySelectorAll("a")) {
    link.target = "_blank";
    link.rel = "noopener noreferrer";
  }
  for (const table of fragment.querySelectorAll("table")) {
    const wrapper = h("div", { class: "wide", tabindex: 0 }); // it scrolls
    table.replaceWith(wrapper);
    wrapper.append(table);
  }
  for (const block of fragment.children) if (block.localName !== "pre") block.dir = "auto"; // of its first word
  for (const pre of fragment.querySelectorAll("pre")) {
    const wrapper = codeBlock(languageOf(pre.querySelector("code")));
    pre.replaceWith(wrapper);
    pre.tabIndex = 0;
    wrapper.append(pre);
  }
  if (isIncomplete) return fragment;
  for (const code of fragment.querySelectorAll("pre > code")) highlight(code);
  for (const code of fragment.querySelectorAll("code.math")) typeset(code);
  return fragment;
}

// codeBlock returns a block with its language, if it is known, and without its code.
function codeBlock(language) {
  const copy = copyButton("Copy code", () => block.querySelector("code").textContent);
  const block = h("div", { class: "code-block" }, h("div", { class: "bar", "data-language": language }, copy));
  return block;
}

// A streaming block is split at LIMIT characters, which bounds the cost of a delta.
const LIMIT = 4096;

const fenceOf = (line) => /^ {0,3}(`{3,}|~{3,})\s*(\S*)/.exec(line) ?? [];

// StreamingMarkdown renders Markdown while it streams. A delta renders the last block again or
// appends to a code block, so its cost is independent of the length of the text. Blocks end at
// blank lines, which is an approximation; complete text uses render.
export class StreamingMarkdown {
  #element;
  #block = ""; // the complete lines of the last block
  #partial = ""; // the incomplete last line
  #blockElement;
  #fence; // the opening fence within a code block
  #lastLine; // the text node of the last line of the code block

  constructor(element) {
    this.#element = element;
    this.#blockElement = h("div");
    element.replaceChildren(this.#blockElement);
  }

  // append adds text. It becomes visible with show.
  append(text) {
    const lines = (this.#partial + text).split("\n");
    this.#partial = lines.pop();
    for (const line of lines) this.#line(line);
  }

  show() {
    if (this.#fence) {
      if (this.#partial.length > LIMIT) {
        this.#lastLine.before(this.#partial);
        this.#partial = "";
      }
      this.#lastLine.data = this.#partial;
      return;
    }
    if (this.#block.length + this.#partial.length > LIMIT) {
      this.#block += this.#partial;
      this.#partial = "";
      this.#endBlock();
    }
    this.#blockElement.replaceChildren(render(this.#block + this.#partial, { isIncomplete: true }));
  }

  #line(line) {
    const [, fence, language] = fenceOf(line);
    if (this.#fence) {
      if (!fence?.startsWith(this.#fence)) this.#lastLine.before(line + "\n");
      this.#lastLine.data = "";
      if (!fence?.startsWith(this.#fence)) return;
      this.#fence = undefined;
      highlight(this.#lastLine.parentElement);
    } else if (fence) {
      this.#endBlock();
      this.#fence = fence;
      this.#lastLine = document.createTextNode("");
      const block = codeBlock(language);
      block.append(h("pre", { tabindex: 0 }, h("code", { class: language && `language-${language}` }, this.#lastLine)));
      this.#blockElement.before(block);
    } else if (line.trim() === "" || this.#block.length > LIMIT) {
      this.#block += line + "\n";
      this.#endBlock();
    } else {
      this.#block += line + "\n";
    }
  }

  #endBlock() {
    if (this.#block.trim()) this.#blockElement.before(render(this.#block));
    this.#block = "";
    this.#blockElement.replaceChildren();
  }
}
