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
    for (const [other, item] of this.#items) mark(item, other === name);
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

  #show({ contexts, next }) {
    const current = location.hash.slice(1);
    const before = this.#items;
    this.#items = new Map(contexts.map(({ contextName: name }) => {
      const item = before.get(name) ?? h("li", null, h("a", { href: `#${name}` }, h("span", { class: "name" }, name), h("span", { class: "details", dir: "ltr" })));
      mark(item, name === current);
      return [name, item];
    }));
    for (const summary of contexts) {
      this.#summaries.set(summary.contextName, summary);
      this.#describe(summary.contextName);
    }
    // An element in place is not moved, because moving it would lose the focus.
    let at = $("list").firstChild;
    for (const item of this.#items.values()) {
      if (item === at) at = at.nextSibling;
      else $("list").insertBefore(item, at);
    }
    while (at) {
      const extra = at;
      at = at.nextSibling;
      extra.remove();
    }
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
    const text = visible([status, this.#summaries.get(name).model].filter(Boolean).join(" · "));
    item.firstChild.className = status ?? "";
    const details = item.querySelector(".details");
    if (details.textContent !== text) details.textContent = text;
    item.firstChild.setAttribute("aria-busy", status === "answering");
  }

  #moveFocus(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    const stops = [$("search"), ...$("list").querySelectorAll("a")];
    stops[stops.indexOf(document.activeElement) + step]?.focus();
    event.preventDefault();
  }
}

function showNote(text) {
  $("list-note").hidden = !text;
  $("list-note").textContent = text;
}

function mark(item, current) {
  if (current) item.firstChild.setAttribute("aria-current", "page");
  else item.firstChild.removeAttribute("aria-current");
}
