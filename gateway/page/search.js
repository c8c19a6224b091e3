// Searches names, titles and messages. The list of contexts shows the names and titles it finds.

import { headline, labelFilter, validName } from "./contexts.js";
import { $, h, message } from "./dom.js";
import { relative, request } from "./request.js";
import { when } from "./time.js";

const DELAY_MS = 150;
const SHORTEST = 2; // characters
const PAGE = 20;

export class Search {
  #timer;
  #searches = 0;
  #next; // the path of the next page of hits
  #contexts;

  constructor(contexts) {
    this.#contexts = contexts;
    $("search").addEventListener("input", () => {
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => this.#search(), DELAY_MS);
    });
    $("more").addEventListener("click", () => this.#load(this.#next));
    $("find").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#open();
    });
    $("search").addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || !$("search").value) return;
      event.stopPropagation(); // elsewhere Escape stops the answer
      $("search").value = "";
      $("search").dispatchEvent(new Event("input"));
    });
  }

  // #open opens the first result, or creates a context if there is none.
  async #open() {
    const name = $("search").value.trim();
    clearTimeout(this.#timer);
    await Promise.all([this.#contexts.refresh(), this.#search()]);
    const found = this.#contexts.first ?? $("hits").querySelector("a")?.hash;
    if (found || validName(name)) location.hash = found ?? name;
  }

  async #search() {
    const text = $("search").value.trim();
    this.#searches++;
    $("hits").replaceChildren();
    $("found").hidden = true;
    if (text.length >= SHORTEST) await this.#load(`search?${new URLSearchParams({ q: text, limit: PAGE, ...labelFilter() })}`);
  }

  async #load(path) {
    const number = ++this.#searches;
    let page;
    try {
      const response = await request(path);
      page = await response.json();
    } catch (error) {
      page = { hits: [], error };
    }
    if (number !== this.#searches) return;
    this.#next = page.next && relative(page.next);
    $("hits").append(...page.hits.map((hit) => item(hit, this.#contexts.summaryOf(hit.contextName))));
    $("more").hidden = !page.next;
    $("found").hidden = !page.error && !$("hits").firstChild;
    $("hits-note").hidden = !page.error;
    $("hits-note").textContent = page.error ? `Messages cannot be searched: ${page.error.message}` : "";
  }
}

function item({ contextName, eventId, role, timestamp, fragments, title }, summary) {
  return h("li", null, h("a", { href: `#${contextName}${eventId.slice(eventId.lastIndexOf(":"))}` },
    h("span", { class: "name", dir: "auto" }, title || headline(summary)), h("time", { datetime: timestamp }, when(timestamp)),
    h("span", { class: "fragment", dir: "auto" }, h("span", { class: "visually-hidden" }, role === "user" ? "You: " : "Answer: "),
      fragments.map(({ text, match }) => (match ? h("mark", null, message(text)) : message(text))))));
}
