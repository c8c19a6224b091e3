// The button and the dialog that delete the selected context for ever.

import { request } from "./request.js";
import { $ } from "./dom.js";
import { visible } from "./visible.js";

// Deletion asks for a confirmation. started receives the name of a context whose deletion was accepted.
export class Deletion {
  #name;
  #started;

  constructor({ started }) {
    this.#started = started;
    $("delete").addEventListener("click", () => {
      $("deletion-forks").checked = false;
      this.#ask("");
    });
    $("deletion").addEventListener("close", () => this.#answered());
  }

  select(name) {
    this.#name = name;
    $("deletion").close();
  }

  #ask(error) {
    $("deletion-name").textContent = visible(this.#name);
    $("deletion-error").textContent = visible(error);
    $("deletion").returnValue = "";
    $("deletion").showModal();
  }

  async #answered() {
    if ($("deletion").returnValue !== "delete") return;
    const name = this.#name;
    const forks = $("deletion-forks").checked ? "delete" : "keep";
    try {
      await request(`contexts/${encodeURIComponent(name)}?purge=true&forks=${forks}`, { method: "DELETE" });
      this.#started(name);
    } catch (error) {
      if (name === this.#name) this.#ask(`Not deleted: ${error.message}`);
    }
  }
}
