// Copies text to the clipboard.

import { $, h } from "./dom.js";

const SHOWN_MS = 2000;

// copyButton returns a button that copies the result of text(). Its label is not part of the text around it.
export function copyButton(label, text) {
  const button = h("button", { type: "button", class: "quiet copy", "data-key": "copy", "aria-label": label, title: label, onclick: async () => {
    const isCopied = await copy(text());
    button.dataset.outcome = isCopied ? "Copied" : "Not copied";
    $("announcer").textContent = button.dataset.outcome;
    setTimeout(() => delete button.dataset.outcome, SHOWN_MS);
  } });
  return button;
}

export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copySelected(text); // without TLS there is no clipboard
  }
}

function copySelected(text) {
  const field = h("textarea", { class: "visually-hidden", readonly: true });
  field.value = text;
  const { activeElement } = document;
  document.body.append(field);
  field.select();
  const isCopied = document.execCommand("copy");
  field.remove();
  activeElement?.focus();
  return isCopied;
}
