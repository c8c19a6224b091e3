// The dialog that deletes a context for ever, and shows how far the deletion is.

import { $, h } from "./dom.js";
import { onSubmit, openForm } from "./form.js";
import { request } from "./request.js";

const POLL_MS = 500;

// The names of one and of several.
const PLACES = {
  runs: ["history in Temporal", "histories in Temporal"], schedules: ["schedule", "schedules"],
  sends: ["scheduled message", "scheduled messages"], evaluations: ["evaluation", "evaluations"],
  log: ["part of the log", "parts of the log"], blobs: ["file", "files"], cursors: ["position of a hook", "positions of hooks"],
  forks: ["entry about forks", "entries about forks"],
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
      this.#offerForks();
    });
    onSubmit("deletion", () => this.#delete());
  }

  select(name) {
    this.#name = name;
    $("deletion").close();
  }

  // #offerForks offers to delete the forks, too, if there are any.
  async #offerForks() {
    const name = this.#name;
    const choice = $("deletion-forks").closest("label");
    choice.hidden = true;
    const response = await request(`contexts/${encodeURIComponent(name)}/branches`).catch(() => undefined);
    const { contexts } = await response?.json() ?? {};
    if (name === this.#name) choice.hidden = contexts?.every(({ forkedFrom }) => !forkedFrom?.startsWith(`${name}:`)) ?? false;
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
  const rows = [
    ...removed.map(({ place, count }) => [count, ...(PLACES[place] ?? [place, place])]),
    [deletedForks.length, "fork", "forks"],
    [keptForks.length, "fork kept, with a copy of what it shared", "forks kept, with a copy of what they shared"],
  ].filter(([count]) => count > 0);
  $("deleting-places").replaceChildren(...rows.map(([count, one, several]) => h("li", null, h("b", null, String(count)), ` ${count === 1 ? one : several}`)));
  $("deleting-note").textContent = endedAt ? "Deleted." : "Deleting…";
}
