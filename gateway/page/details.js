// The menu of the selected context: its title, labels and archive.

import { headline } from "./contexts.js";
import { $ } from "./dom.js";
import { onSubmit, openForm } from "./form.js";
import { newKey, send } from "./request.js";
import { visible } from "./visible.js";

export class Details {
  #name;
  #contexts;
  #failed;

  // failed shows an error.
  constructor(contexts, failed) {
    this.#contexts = contexts;
    this.#failed = failed;
    for (const button of $("menu").querySelectorAll("button")) button.addEventListener("click", () => $("menu").hidePopover());
    $("rename").addEventListener("click", () => this.#open());
    $("archive").addEventListener("click", () => this.#archive());
    onSubmit("details", () => this.#save());
  }

  select(name) {
    this.#name = name;
    $("details").close();
    $("menu").hidePopover();
    this.show();
  }

  // show shows the title in the head.
  show() {
    if (!this.#name) return;
    const summary = this.#contexts.summaryOf(this.#name);
    const title = visible(headline(summary));
    document.title = `${title} · Chronicle`;
    const texts = { name: title, address: title === this.#name ? "" : this.#name, archive: summary.archived ? "Unarchive" : "Archive" };
    for (const [id, text] of Object.entries(texts)) if ($(id).textContent !== text) $(id).textContent = text;
  }

  #open() {
    const { title = "", preview = "", labels = {} } = this.#contexts.summaryOf(this.#name);
    $("title").value = title;
    $("title").placeholder = preview;
    $("labels").value = Object.entries(labels).map(([name, value]) => `${name}=${value}\n`).join("");
    openForm("details");
  }

  async #save() {
    const { title = "", labels = {} } = this.#contexts.summaryOf(this.#name);
    const entered = parseLabels($("labels").value);
    const changes = {};
    if ($("title").value.trim() !== title) changes.title = $("title").value.trim();
    if (JSON.stringify(entered) !== JSON.stringify(labels)) changes.labels = entered;
    await this.#send(changes);
  }

  async #archive() {
    const name = this.#name;
    const archived = !this.#contexts.summaryOf(name).archived;
    this.#failed("");
    try {
      await this.#send({ archived });
      this.#contexts.remove(name);
    } catch (error) {
      this.#failed(`Not ${archived ? "archived" : "unarchived"}: ${error.message}`);
    }
  }

  async #send(changes) {
    if (Object.keys(changes).length === 0) return;
    const name = this.#name;
    await send(name, JSON.stringify({ _tag: "SetDetailsEvent", ...changes }), newKey());
    this.#contexts.update(name, changes);
  }
}

// parseLabels reads lines of the form name=value.
function parseLabels(text) {
  return Object.fromEntries(text.split("\n").filter((line) => line.trim()).map((line) => {
    const at = line.indexOf("=");
    if (at < 1) throw new Error(`“${line.trim()}” is not a label: write name=value, one per line.`);
    return [line.slice(0, at).trim(), line.slice(at + 1).trim()];
  }));
}
