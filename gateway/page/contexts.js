// The list of contexts, refreshed while the page is visible.

import { ask } from "./ask.js";
import { $, h } from "./dom.js";

// EVERY is the refresh interval in ms.
const EVERY = 2000;

// PAGE is how many contexts are shown at first, MOST the maximum; beyond that, users
// search.
const PAGE = 100;
const MOST = 1000;

export const validName = (name) => /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/.test(name);

export class Contexts {
  #items = new Map(); // the elements by name
  #limit = PAGE;
  #timer;
  #asked = 0;
  #changed;
  #connected;
  #known = new Map(); // the newest summaries by name, also of what a search leaves out
  #told = {}; // { name, status, since } of the context that is seen, as its stream tells

  // changed is called with a new list; connected(yes, why) reports whether the list is
  // available, which requires Temporal.
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
      this.#limit = Math.min(MOST, this.#limit + PAGE);
      this.refresh();
    });
    $("contexts").addEventListener("keydown", (event) => this.#move(event));
    document.addEventListener("visibilitychange", () => this.refresh());
    this.refresh();
  }

  // statusOf returns the known status of a context. Only the list knows of a session that
  // was terminated; there it closed after the last status in the stream.
  statusOf(name) {
    const listed = this.#known.get(name);
    const isTold = this.#told.name === name && !(Date.parse(listed?.closedAt) > Date.parse(this.#told.since));
    return isTold ? this.#told.status : listed?.status;
  }

  // tell sets the status of the selected context from its stream, { status, since }, which
  // is more recent than the list; undefined if the stream is lost.
  tell(name, doing) {
    this.#told = doing ? { name, ...doing } : {};
    this.#describe(name);
    this.#changed();
  }

  // select marks the selected context.
  select(name) {
    this.#told = {};
    for (const [of, item] of this.#items) mark(item, of === name);
  }

  // refresh loads the list now and at intervals.
  async refresh() {
    clearTimeout(this.#timer);
    if (document.hidden) return;
    const asked = ++this.#asked;
    try {
      const query = new URLSearchParams({ q: $("search").value.trim(), limit: this.#limit });
      const response = await ask(`contexts?${query}`);
      const page = await response.json();
      if (asked === this.#asked) {
        this.#connected(true);
        this.#show(page);
      }
    } catch (error) {
      if (asked === this.#asked) {
        this.#connected(false, error.message);
        note(`Not connected: ${error.message}. Trying again…`);
      }
    }
    if (asked === this.#asked) this.#timer = setTimeout(() => this.refresh(), EVERY);
  }

  #show({ contexts, next }) {
    const current = location.hash.slice(1);
    const before = this.#items;
    this.#items = new Map(contexts.map(({ contextName: name }) => {
      const item = before.get(name) ?? h("li", null, h("a", { href: `#${name}` }, h("span", { class: "name" }, name), h("span", { class: "what" })));
      mark(item, name === current);
      return [name, item];
    }));
    for (const summary of contexts) {
      this.#known.set(summary.contextName, summary);
      this.#describe(summary.contextName);
    }
    // Elements that are not moved keep the focus.
    let at = $("list").firstChild;
    for (const item of this.#items.values()) {
      if (item === at) at = at.nextSibling;
      else $("list").insertBefore(item, at);
    }
    while (at) {
      const gone = at;
      at = at.nextSibling;
      gone.remove();
    }
    const sought = $("search").value.trim();
    $("more").hidden = !next || this.#limit >= MOST;
    note(contexts.length > 0 ? "" : sought ? "No matching contexts." : "No contexts yet.");
    $("find-hint").hidden = !sought || this.#items.has(sought);
    $("find-hint").textContent = validName(sought)
      ? `Enter creates “${sought}”`
      : "Names use letters, digits, dots, dashes and underscores, and start with a letter or digit.";
    this.#changed();
  }

  // describe updates the element of a context.
  #describe(name) {
    const item = this.#items.get(name);
    if (!item) return;
    const status = this.statusOf(name);
    const said = [status, this.#known.get(name).model].filter(Boolean).join(" · ");
    item.firstChild.className = status ?? "";
    const what = item.querySelector(".what");
    if (what.textContent !== said) what.textContent = said;
    item.firstChild.setAttribute("aria-busy", status === "answering");
  }

  // move handles the arrow keys.
  #move(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    const stops = [$("search"), ...$("list").querySelectorAll("a")];
    stops[stops.indexOf(document.activeElement) + step]?.focus();
    event.preventDefault();
  }
}

// note shows a line below the list.
function note(text) {
  $("list-note").hidden = !text;
  $("list-note").textContent = text;
}

function mark(item, current) {
  if (current) item.firstChild.setAttribute("aria-current", "page");
  else item.firstChild.removeAttribute("aria-current");
}
