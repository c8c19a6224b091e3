// The choice in the menu that hides the calls of tools. It lasts, and calls that wait for a person stay visible.

import { $ } from "./dom.js";

function show(isHidden) {
  document.body.classList.toggle("without-tools", isHidden);
  $("tools").textContent = isHidden ? "Show tool calls" : "Hide tool calls";
}

try {
  show(localStorage.getItem("tools") === "hidden");
} catch {
  // storage is denied
}

$("tools").addEventListener("click", () => {
  const isHidden = !document.body.classList.contains("without-tools");
  show(isHidden);
  try {
    localStorage.setItem("tools", isHidden ? "hidden" : "shown");
  } catch {
    // storage is denied; the choice lasts until the page closes
  }
});
