// Colors code blocks. A worker finds the tokens: on hostile text, the regular expressions of a language take seconds.

import { h, message } from "./dom.js";
import { scriptURL } from "./scripts.js";

const MAX_CHARS = 50_000; // longer blocks stay plain
const TIMEOUT_MS = 5000; // with the loading of the worker
const KEPT = 50;

const known = new Map(); // the trees of the newest KEPT blocks, by language and text
let worker;
let queue = Promise.resolve(); // the worker gets one block at a time

// languageOf returns the language in the class of a code element, or undefined.
export const languageOf = (code) => /(?:^|\s)language-(\S+)/.exec(code.className)?.[1];

// highlight colors a complete code element in the language of its class. It does so at once if the same block was
// colored before, as when an answer ends.
export function highlight(code) {
  const language = languageOf(code);
  const text = code.textContent;
  if (!language || text.length > MAX_CHARS) return;
  const key = `${language} ${text}`;
  if (known.has(key)) return color(code, known.get(key));
  queue = queue.then(async () => {
    if (!code.isConnected) return;
    if (!known.has(key)) known.set(key, await treeOf(language, text));
    if (known.size > KEPT) known.delete(known.keys().next().value);
    color(code, known.get(key));
  });
}

function color(code, tree) {
  if (tree) code.replaceChildren(...tree.children.map(nodeOf));
}

const nodeOf = (token) => (typeof token === "string" ? message(token) : h("span", { class: `token-${token.scope?.split(/[.:]/, 1)}` }, token.children.map(nodeOf)));

// treeOf resolves with undefined if the worker fails.
function treeOf(language, text) {
  worker ??= new Worker(scriptURL("highlighter"), { type: "module" });
  return new Promise((resolve) => {
    const fail = () => {
      clearTimeout(timer); // it would end the worker of the next block
      worker.terminate();
      worker = undefined;
      resolve();
    };
    const timer = setTimeout(fail, TIMEOUT_MS);
    worker.onerror = fail;
    worker.onmessage = ({ data }) => {
      clearTimeout(timer);
      resolve(data);
    };
    worker.postMessage({ language, text });
  });
}
