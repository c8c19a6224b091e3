// The dialog that deletes a context for ever, and shows how far the deletion is.

import { $, h } from "./dom.js";
import { onSubmit, openForm } from "./form.js";
import { request } from "./request.js";

const POLL_MS = 500;

const PLACES = {
  runs: "histories in Temporal", schedules: "schedules", sends: "scheduled messages", evaluations: "evaluations",
  log: "parts of the log", blobs: "files", cursors: "positions of hooks", forks: "entries about forks",
};

export class Deletion {
  #name;
  #started;

  // started receives the name of a context whose deletion was accepted.
  constructor({ started }) {
    this.#started = started;
    $("delete").addEventListener("click", () => {
      $("deletion-forks").checked = false;
      $("deletion-name").textContent = this.#name;
      openForm("deletion");
    });
    onSubmit("deletion", () => this.#delete());
  }

  select(name) {
    this.#name = name;
    $("deletion").close();
  }

  async #delete() {
    const name = this.#name;
    const forks = $("deletion-forks").checked ? "delete" : "keep";
    try {
      await request(`contexts/${encodeURIComponent(name)}?purge=true&forks=${forks}`, { method: "DELETE" });
    } catch (error) {
      throw new Error(`Not deleted: ${error.message}`);
    }
    if (name === this.#name) $("deletion").close();
    this.#started(name);
    follow(name);
  }
}

// follow shows a deletion until it ends or the dialog is closed.
async function follow(name) {
  $("deleting-name").textContent = name;
  $("deleting-note").textContent = "";
  $("deleting-places").replaceChildren();
  $("deleting").showModal();
  while ($("deleting").open && $("deleting-name").textContent === name) {
    let receipt;
    try {
      const response = await request(`contexts/${encodeURIComponent(name)}/deletion`);
      receipt = await response.json();
    } catch (error) {
      $("deleting-note").textContent = `${error.message}. The deletion continues.`;
    }
    if (receipt) show(receipt);
    if (receipt?.endedAt) return;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

function show({ removed = [], deletedForks = [], keptForks = [], endedAt }) {
  const rows = removed.filter(({ count }) => count > 0).map(({ place, count }) => h("li", null, h("b", null, String(count)), ` ${PLACES[place] ?? place}`));
  if (deletedForks.length > 0) rows.push(h("li", null, h("b", null, String(deletedForks.length)), " forks"));
  if (keptForks.length > 0) rows.push(h("li", null, h("b", null, String(keptForks.length)), " forks kept, with a copy of what they shared"));
  $("deleting-places").replaceChildren(...rows);
  $("deleting-note").textContent = endedAt ? "Deleted." : "Deleting…";
}
