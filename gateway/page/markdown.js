// Untrusted Markdown as inert elements. HTML is shown as source, links lead only to the web or
// to mail, and images become links: a message never triggers a fetch.

import { Marked } from "./lib/marked/marked.esm.js";
import DOMPurify from "./lib/dompurify/purify.es.mjs";
import { h } from "./dom.js";

const entities = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
const escape = (text) => text.replace(/[&<>"']/g, (c) => entities[c]);
const leadsOut = (href) => /^(?:https?:\/\/|mailto:)/i.test(href);

const markdown = new Marked({
  breaks: true,
  renderer: {
    html: ({ text, block }) => (block ? `<p class="raw">${escape(text.trimEnd())}</p>` : escape(text)),
    link: ({ href, raw }) => (leadsOut(href) ? false : escape(raw)), // false: as usual
    image: ({ href, text, raw }) => (leadsOut(href) ? `<a href="${escape(href)}">${escape(text || href)}</a>` : escape(raw)),
  },
});

// A second line of defense: the renderer already produces nothing else.
const allowed = {
  ALLOWED_TAGS: [
    "p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "pre", "code",
    "em", "strong", "del", "a", "table", "thead", "tbody", "tr", "th", "td", "input",
  ],
  ALLOWED_ATTR: ["href", "title", "class", "start", "align", "type", "checked", "disabled"],
  ALLOWED_URI_REGEXP: /^(?:https?:\/\/|mailto:)/i,
  ADD_URI_SAFE_ATTR: ["start", "align", "type"], // the others are held against the expression
  ALLOW_DATA_ATTR: false,
  RETURN_DOM_FRAGMENT: true,
};

// render returns Markdown as a DocumentFragment.
export function render(text) {
  const fragment = DOMPurify.sanitize(markdown.parse(text), allowed);
  for (const link of fragment.querySelectorAll("a")) {
    link.target = "_blank";
    link.rel = "noopener noreferrer";
  }
  for (const table of fragment.querySelectorAll("table")) {
    const frame = h("div", { class: "wide" });
    table.replaceWith(frame);
    frame.append(table);
  }
  return fragment;
}

// LIMIT is how many characters of a growing block are rendered again.
const LIMIT = 4096;

const fenceOf = (line) => /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1];

// Growing renders Markdown while it streams. Only the last block is rendered again, and code is
// only appended, so the cost per delta does not depend on the length of the text. It splits
// blocks at blank lines, which is approximate; render is used for the complete text.
export class Growing {
  #element;
  #block = ""; // whole lines of the block that grows
  #partial = ""; // what came behind the last line break
  #shown; // the element of that block
  #fence; // what the code began with, while in code
  #last; // the text of the last line of the code

  constructor(element) {
    this.#element = element;
    this.#shown = h("div");
    element.replaceChildren(this.#shown);
  }

  // append adds text; show displays it.
  append(text) {
    const lines = (this.#partial + text).split("\n");
    this.#partial = lines.pop();
    for (const line of lines) this.#line(line);
  }

  // show updates the elements.
  show() {
    if (this.#fence) {
      if (this.#partial.length > LIMIT) {
        this.#last.before(this.#partial);
        this.#partial = "";
      }
      this.#last.data = this.#partial;
      return;
    }
    if (this.#block.length + this.#partial.length > LIMIT) {
      this.#block += this.#partial;
      this.#partial = "";
      this.#settle();
    }
    this.#shown.replaceChildren(render(this.#block + this.#partial));
  }

  #line(line) {
    const fence = fenceOf(line);
    if (this.#fence) {
      if (fence?.startsWith(this.#fence)) this.#fence = undefined;
      else this.#last.before(line + "\n");
      this.#last.data = "";
    } else if (fence) {
      this.#settle();
      this.#fence = fence;
      this.#last = document.createTextNode("");
      this.#shown.before(h("pre", null, h("code", null, this.#last)));
    } else if (line.trim() === "" || this.#block.length > LIMIT) {
      this.#block += line + "\n";
      this.#settle();
    } else {
      this.#block += line + "\n";
    }
  }

  // settle renders the block for the last time.
  #settle() {
    if (this.#block.trim()) this.#shown.before(render(this.#block));
    this.#block = "";
    this.#shown.replaceChildren();
  }
}
