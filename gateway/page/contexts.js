// The list of contexts, refreshed while the page is visible.

import { request } from "./request.js";
import { $, h } from "./dom.js";
import { visible } from "./visible.js";

const REFRESH_MS = 2000;

// The list grows by PAGE up to MAX contexts.
const PAGE = 100;
const MAX = 1000;

export const validName = (name) => /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/.test(name);

export class Contexts {
  #items = new Map(); // elements by name
  #limit = PAGE;
  #timer;
  #requests = 0;
  #changed;
  #connected;
  #summaries = new Map(); // by name, also those outside the search
  #streamed = {}; // { name, status, since } from the stream of the selected context
  #waiting; // the name of the selected context if a call waits for a person

  // changed is called after an update; connected(yes, reason) reports whether Temporal
  // provides the list.
  constructor({ changed, connected }) {
    this.#changed = changed;
    this.#connected = connected;
    $("search").addEventListener("input", () => this.refresh());
    $("find").addEventListener("submit", (event) => {
      event.preventDefault();
      const name = $("search").value.trim();
      if (validName(name)) location.hash = name;
    });
    $("more").addEventListener("click", () => {
      this.#limit = Math.min(MAX, this.#limit + PAGE);
      this.refresh();
    });
    $("contexts").addEventListener("keydown", (event) => this.#moveFocus(event));
    document.addEventListener("visibilitychange", () => this.refresh());
    this.refresh();
  }

  // The stream is newer than the list, but only the list reports a terminated session. Such a session
  // closed after the last streamed status.
  statusOf(name) {
    const listed = this.#summaries.get(name);
    const isStreamed = this.#streamed.name === name && !(Date.parse(listed?.closedAt) > Date.parse(this.#streamed.since));
    return isStreamed ? this.#streamed.status : listed?.status;
  }

  // setStreamed sets the { status, since } from the stream of the selected context, or
  // undefined when the stream ends.
  setStreamed(name, streamed) {
    this.#streamed = streamed ? { name, ...streamed } : {};
    this.#describe(name);
    this.#changed();
  }

  // setWaiting sets whether a call of the selected context waits for an approval or an answer, which the
  // status of its stream does not tell.
  setWaiting(name, waits) {
    this.#waiting = waits ? name : undefined;
    this.#describe(name);
  }

  select(name) {
    this.#streamed = {};
    this.#mark(name);
  }

  // related returns the listed contexts of the conversation of a context.
  related(name) {
    const root = this.#rootOf(name);
    return [...this.#items.keys()].filter((other) => this.#rootOf(other) === root).sort();
  }

  #rootOf(name) {
    return this.#summaries.get(name)?.root ?? name;
  }

  // models returns the models of the listed contexts.
  get models() {
    return [...new Set([...this.#summaries.values()].map(({ model }) => model).filter(Boolean))].sort();
  }

  // #mark marks the selected context, and shows the branches of its conversation only.
  #mark(name) {
    for (const [other, item] of this.#items) {
      if (other === name) item.firstChild.setAttribute("aria-current", "page");
      else item.firstChild.removeAttribute("aria-current");
      const branches = item.querySelector("ul");
      if (branches) branches.hidden = this.#rootOf(name) !== this.#rootOf(other);
    }
  }

  // refresh loads the list now and every REFRESH_MS.
  async refresh() {
    clearTimeout(this.#timer);
    if (document.hidden) return;
    const number = ++this.#requests;
    try {
      const query = new URLSearchParams({ q: $("search").value.trim(), limit: this.#limit });
      const response = await request(`contexts?${query}`);
      const page = await response.json();
      if (number === this.#requests) {
        this.#connected(true);
        this.#show(page);
      }
    } catch (error) {
      if (number === this.#requests) {
        this.#connected(false, error.message);
        showNote(`Not connected: ${error.message}. Retrying…`);
      }
    }
    if (number === this.#requests) this.#timer = setTimeout(() => this.refresh(), REFRESH_MS);
  }

  // A conversation is one item, with its branches inside, at the place of the first of them. The first one stands for a
  // root that is not listed, for example because it is deleted.
  #show({ contexts, next }) {
    const before = this.#items;
    const conversations = new Map(); // names of listed contexts, by root
    for (const summary of contexts) {
      const { contextName: name, root = name } = summary;
      this.#summaries.set(name, summary);
      if (conversations.has(root)) conversations.get(root).push(name);
      else conversations.set(root, [name]);
    }
    this.#items = new Map();
    const itemOf = (name) => {
      const item = before.get(name) ?? h("li", null, h("a", { href: `#${name}` }, h("span", { class: "name" }, name), h("span", { class: "details", dir: "ltr" })));
      this.#items.set(name, item);
      return item;
    };
    arrange($("list"), [...conversations].map(([root, names]) => {
      const first = names.includes(root) ? root : names[0];
      const item = itemOf(first);
      const branches = names.filter((name) => name !== first).map(itemOf);
      for (const branch of branches) branch.querySelector("ul")?.remove(); // it was the first
      let inside = item.querySelector("ul");
      if (branches.length > 0) {
        if (!inside) item.append((inside = h("ul", { class: "branches", "aria-label": `Branches of ${first}` })));
        arrange(inside, branches);
      } else inside?.remove();
      return item;
    }));
    this.#mark(location.hash.slice(1));
    for (const name of this.#items.keys()) this.#describe(name);
    const query = $("search").value.trim();
    $("more").hidden = !next || this.#limit >= MAX;
    showNote(contexts.length > 0 ? "" : query ? "No matching contexts." : "No contexts yet.");
    $("find-hint").hidden = !query || this.#items.has(query);
    $("find-hint").textContent = validName(query)
      ? `Enter creates “${query}”`
      : "Names use letters, digits, dots, dashes and underscores, and start with a letter or digit.";
    this.#changed();
  }

  #describe(name) {
    const item = this.#items.get(name);
    if (!item) return;
    const known = this.statusOf(name);
    const status = known === "answering" && this.#waiting === name ? "waiting" : known;
    const branches = item.querySelector("ul")?.childElementCount;
    const text = visible([
      status, this.#summaries.get(name).model, branches && `${branches} branch${branches === 1 ? "" : "es"}`,
    ].filter(Boolean).join(" · "));
    item.firstChild.className = status ?? "";
    const details = item.querySelector(".details");
    if (details.textContent !== text) details.textContent = text;
    item.firstChild.setAttribute("aria-busy", status === "answering");
  }

  #moveFocus(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    const stops = [$("search"), ...$("list").querySelectorAll("a:not([hidden] a)")];
    stops[stops.indexOf(document.activeElement) + step]?.focus();
    event.preventDefault();
  }
}

function showNote(text) {
  $("list-note").hidden = !text;
  $("list-note").textContent = text;
}

// arrange makes items the children of a list. An element in place is not moved, because moving it would lose the focus.
function arrange(list, items) {
  let at = list.firstChild;
  for (const item of items) {
    if (item === at) at = at.nextSibling;
    else list.insertBefore(item, at);
  }
  while (at) {
    const extra = at;
    at = at.nextSibling;
    extra.remove();
  }
}
