// Forms in dialogs.

import { $ } from "./dom.js";
import { visible } from "./visible.js";

// onSubmit calls submit when the form of a dialog is submitted, and closes the dialog if submit succeeds and does not
// return true. Otherwise the dialog shows the error. A submit button with the value "cancel" closes it only.
export function onSubmit(id, submit) {
  const dialog = $(id);
  const form = dialog.querySelector("form");
  let isSending = false;
  form.addEventListener("submit", async (event) => {
    if (event.submitter?.value === "cancel") return;
    event.preventDefault();
    if (isSending) return;
    isSending = true;
    fail(dialog, "");
    try {
      if ((await submit()) !== true) dialog.close();
    } catch (error) {
      fail(dialog, error.message);
    }
    isSending = false;
  });
}

export function openForm(id) {
  fail($(id), "");
  $(id).showModal();
}

function fail(dialog, text) {
  dialog.querySelector("[role='alert']").textContent = visible(text);
}
