// A worker that finds the tokens of code. It replies with a tree of { scope, children }, or with undefined for an
// unknown language.

import hljs from "./lib/highlight.js/highlight.min.js";

onmessage = ({ data: { language, text } }) => {
  postMessage(hljs.getLanguage(language) && hljs.highlight(text, { language, ignoreIllegals: true })._emitter.root);
};
