// Shows two alternatives of a conversation side by side.

import { $, h } from "./dom.js";
import { build } from "./entry.js";
import { request } from "./request.js";

// At most LONGEST entries of an alternative are shown.
const LONGEST = 200;

const counter = (id) => Number(id.slice(id.lastIndexOf(":") + 1));

export class Compare {
  #after; // the counter of the last event that the alternatives share
  #titleOf;

  // titleOf returns the title of a context.
  constructor(titleOf) {
    this.#titleOf = titleOf;
    for (const side of ["left", "right"]) $(`${side}-choice`).addEventListener("change", () => this.#show(side));
  }

  select() {
    $("compare").close();
  }

  // open compares a context with the alternative before it, or else after it.
  open({ after, contexts }, name) {
    this.#after = counter(after);
    const at = contexts.indexOf(name);
    const other = contexts[at - 1] ?? contexts[at + 1];
    for (const [side, chosen] of [["left", at > 0 ? other : name], ["right", at > 0 ? name : other]]) {
      $(`${side}-choice`).replaceChildren(...contexts.map((context, i) => h("option", { value: context }, `${i + 1}/${contexts.length} · ${this.#titleOf(context)}`)));
      $(`${side}-choice`).value = chosen;
      this.#show(side);
    }
    $("compare").showModal();
  }

  async #show(side) {
    const name = $(`${side}-choice`).value;
    const list = $(`${side}-entries`);
    $(`${side}-open`).href = `#${name}`;
    list.replaceChildren();
    list.setAttribute("aria-busy", "true");
    let shown;
    try {
      const response = await request(`contexts/${encodeURIComponent(name)}/transcript`);
      const { document: { entries } } = await response.json();
      const first = entries.findIndex(({ content: { event_id: id } }) => id && counter(id) > this.#after);
      const own = first < 0 ? [] : entries.slice(first);
      shown = own.slice(0, LONGEST).map((item) => build(item, { isReadOnly: true }).element);
      if (own.length > LONGEST) shown.push(h("li", { class: "note" }, `${own.length - LONGEST} more`));
    } catch (error) {
      shown = [h("li", { class: "problem", role: "alert" }, `Not loaded: ${error.message}`)];
    }
    if (name !== $(`${side}-choice`).value) return;
    list.replaceChildren(...shown);
    list.removeAttribute("aria-busy");
  }
}
