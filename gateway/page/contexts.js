// The list of contexts, most recently active first, refreshed while the page is visible.

import { relative, request } from "./request.js";
import { $, h } from "./dom.js";
import { period, when } from "./time.js";
import { visible } from "./visible.js";

const REFRESH_MS = 2000;
const PAGE = 100;

// Within NEAR pixels of the end of the list, older contexts are loaded.
const NEAR = 600;

export const validName = (name) => /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/.test(name);

// headline returns what a list shows first of a context. Branches begin with the same message.
export const headline = ({ contextName, title, preview, root }) => title || (!root && preview) || contextName;

export class Contexts {
  #listed = []; // summaries, in the order of the list
  #next; // the path of the page after them; undefined: none
  #items = new Map(); // elements by name
  #described = new WeakMap(); // { summary, status, branches } that an element shows
  #timer;
  #requests = 0;
  #isLoadingOlder = false;
  #changed;
  #connected;
  #selected;
  #summaries = new Map(); // by name, also those outside the search
  #streamed = {}; // { name, status, since } from the stream of the selected context
  #waiting; // the name of the selected context if a call waits for a person

  // changed is called after an update; connected(yes, reason) reports whether the gateway provides the list.
  constructor({ changed, connected }) {
    this.#changed = changed;
    this.#connected = connected;
    $("search").addEventListener("input", () => this.#restart());
    $("label").addEventListener("change", () => {
      this.#restart();
      $("search").dispatchEvent(new Event("input")); // the search of messages has the same filter
    });
    $("archived").addEventListener("click", () => {
      $("archived").ariaPressed = String(!this.#isArchive);
      this.#restart();
    });
    $("rows").addEventListener("scroll", () => this.#loadOlder(), { passive: true });
    $("contexts").addEventListener("keydown", (event) => this.#moveFocus(event));
    document.addEventListener("visibilitychange", () => this.refresh());
    this.refresh();
  }

  get #isArchive() {
    return $("archived").ariaPressed === "true";
  }

  // The stream is newer than the list, but only the list reports a terminated session. Such a session
  // closed after the last streamed status.
  statusOf(name) {
    const listed = this.#summaries.get(name);
    const isStreamed = this.#streamed.name === name && !(Date.parse(listed?.closedAt) > Date.parse(this.#streamed.since));
    return isStreamed ? this.#streamed.status : listed?.status;
  }

  // summaryOf returns the summary of a context, which has only a name until it was listed.
  summaryOf(name) {
    return this.#summaries.get(name) ?? { contextName: name };
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
    this.#selected = name;
    this.#mark();
    if (name && !this.#summaries.has(name)) this.#learn(name);
  }

  // #learn reads the summary of a context that is not among the first of the list, or archived.
  async #learn(name) {
    for (const archived of [false, true]) {
      await this.#read(`contexts?${new URLSearchParams({ q: name, archived, limit: PAGE })}`).catch(() => undefined);
      if (this.#summaries.has(name)) break;
    }
    this.#changed();
  }

  // update changes the summary of a context until the list is loaded again.
  update(name, changes) {
    this.#summaries.set(name, { ...this.summaryOf(name), ...changes });
    this.#describe(name);
    this.#changed();
  }

  // remove removes a context that was archived or deleted, until the list has it again.
  remove(name) {
    this.#listed = this.#listed.filter(({ contextName }) => contextName !== name);
    this.#show();
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
  #mark() {
    for (const [name, item] of this.#items) {
      if (name === this.#selected) item.firstChild.setAttribute("aria-current", "page");
      else item.firstChild.removeAttribute("aria-current");
      const [, branches] = item.children;
      if (branches) branches.hidden = this.#rootOf(this.#selected) !== this.#rootOf(name);
    }
  }

  #restart() {
    this.#listed = [];
    $("rows").scrollTop = 0;
    this.refresh();
  }

  // refresh loads the newest page now and every REFRESH_MS.
  async refresh() {
    clearTimeout(this.#timer);
    if (document.hidden) return;
    const number = ++this.#requests;
    try {
      const query = new URLSearchParams({ q: $("search").value.trim(), limit: PAGE, ...labelFilter(), ...(this.#isArchive ? { archived: true } : {}) });
      const page = await this.#read(`contexts?${query}`);
      if (number === this.#requests) {
        this.#connected(true);
        this.#merge(page);
        this.#show();
      }
    } catch (error) {
      if (number === this.#requests) {
        this.#connected(false, error.message);
        showNote(`Not connected: ${error.message}. Retrying…`);
      }
    }
    if (number === this.#requests) this.#timer = setTimeout(() => this.refresh(), REFRESH_MS);
  }

  async #read(path) {
    const response = await request(path);
    const page = await response.json();
    for (const summary of page.contexts) this.#summaries.set(summary.contextName, summary);
    return page;
  }

  // #merge puts the newest page before the older contexts. If more contexts than one page changed in the meantime, there
  // is a gap between them, and the list begins again.
  #merge({ contexts, next }) {
    const last = contexts.at(-1);
    const names = new Set(contexts.map(({ contextName }) => contextName));
    const older = next && this.#listed.length > 0 && !isOlder(this.#listed[0], last)
      ? this.#listed.filter((summary) => isOlder(summary, last) && !names.has(summary.contextName))
      : [];
    this.#listed = [...contexts, ...older];
    if (older.length === 0) this.#next = next;
  }

  async #loadOlder() {
    const { scrollTop, scrollHeight, clientHeight } = $("rows");
    if (!this.#next || this.#isLoadingOlder || clientHeight === 0 || scrollHeight - scrollTop - clientHeight > NEAR) return;
    this.#isLoadingOlder = true;
    const path = this.#next;
    const page = await this.#read(relative(path)).catch(() => undefined); // refresh reports the error
    this.#isLoadingOlder = false;
    if (!page || path !== this.#next) return;
    const names = new Set(this.#listed.map(({ contextName }) => contextName));
    this.#listed.push(...page.contexts.filter(({ contextName }) => !names.has(contextName)));
    this.#next = page.next;
    this.#show();
  }

  // A conversation is one item, with its branches inside, at the place of the first of them. The first one stands for a
  // root that is not listed, for example because it is deleted.
  #show() {
    const before = this.#items;
    const conversations = new Map(); // names of listed contexts, by root
    for (const { contextName: name, root = name } of this.#listed) {
      if (conversations.has(root)) conversations.get(root).push(name);
      else conversations.set(root, [name]);
    }
    this.#items = new Map();
    const itemOf = (name) => {
      const item = before.get(name) ?? row(name);
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
    const periods = [...conversations.values()].map(([newest]) => period(this.#summaries.get(newest).lastActiveAt));
    periods.forEach((text, i) => ($("list").children[i].dataset.period = text === periods[i - 1] ? "" : text));
    this.#mark();
    for (const name of this.#items.keys()) this.#describe(name);
    this.#offerLabels();
    const isFound = this.#listed.length > 0;
    const query = $("search").value.trim();
    showNote(isFound ? "" : query ? "No matching contexts." : this.#isArchive ? "Nothing is archived." : "No contexts yet.");
    $("find-hint").hidden = !query || this.#items.has(query);
    $("find-hint").textContent = !validName(query)
      ? "Names use letters, digits, dots, dashes and underscores, and start with a letter or digit."
      : isFound ? "" : `Enter creates “${query}”`;
    this.#changed();
    this.#loadOlder();
  }

  // #offerLabels offers the labels of all contexts that were listed.
  #offerLabels() {
    const labels = new Set([...this.#summaries.values()].flatMap(({ labels }) => labelsOf(labels)));
    const [all, ...offered] = $("label").options;
    if (labels.size === offered.length && offered.every(({ value }) => labels.has(value))) return;
    const { value } = $("label");
    $("label").replaceChildren(all, ...[...labels.add(value)].filter(Boolean).sort().map((label) => h("option", { value: label }, label)));
    $("label").value = value;
    $("label").hidden = labels.size === 1;
  }

  // first returns the address of the context that has the text of the search as its name, or of the first in the list.
  get first() {
    const name = $("search").value.trim();
    return this.#items.has(name) ? `#${name}` : $("list").querySelector("a")?.hash;
  }

  #describe(name) {
    const item = this.#items.get(name);
    if (!item) return;
    const summary = this.#summaries.get(name);
    const known = this.statusOf(name);
    const status = known === "answering" && this.#waiting === name ? "waiting" : known;
    const branches = item.children[1]?.childElementCount;
    const before = this.#described.get(item);
    if (before?.summary === summary && before.status === status && before.branches === branches) return;
    this.#described.set(item, { summary, status, branches });
    const title = headline(summary);
    const [link] = item.children;
    link.className = status ?? "";
    link.setAttribute("aria-busy", status === "answering");
    const texts = {
      ".name": title,
      "time": when(summary.lastActiveAt),
      ".preview": summary.title ? summary.preview : "",
      ".details": [
        status !== "idle" && status, title !== name && name, summary.model, branches && `${branches} branch${branches === 1 ? "" : "es"}`,
        ...labelsOf(summary.labels),
      ].filter(Boolean).join(" · "),
    };
    for (const [part, text = ""] of Object.entries(texts)) {
      const element = link.querySelector(part);
      if (element.textContent !== visible(text)) element.textContent = visible(text);
    }
  }

  #moveFocus(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    const stops = [$("search"), ...$("rows").querySelectorAll("a:not([hidden] a)")];
    stops[stops.indexOf(document.activeElement) + step]?.focus();
    event.preventDefault();
  }
}

const labelsOf = (labels = {}) => Object.entries(labels).map((label) => label.join("="));

// labelFilter returns the parameter of the label that the user chose.
export const labelFilter = () => ($("label").value ? { label: $("label").value } : {});

function row(name) {
  return h("li", null, h("a", { href: `#${name}` },
    h("span", { class: "name", dir: "auto" }), h("time"), h("span", { class: "preview", dir: "auto" }), h("span", { class: "details", dir: "ltr" })));
}

// isOlder reports whether a context is below another one in the list.
function isOlder(a, b) {
  const [atA, atB] = [a, b].map(({ lastActiveAt }) => Date.parse(lastActiveAt));
  return atA < atB || (atA === atB && a.contextName > b.contextName);
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
