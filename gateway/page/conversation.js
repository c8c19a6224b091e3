// The view of a conversation. Only a window of entries, up to the newest, has elements;
// scrolling up adds older ones. A patch updates its entries in the next frame.

import { build } from "./entry.js";

const WINDOW = 100; // entries are shown at first

// A frame adds OLDER entries while fewer than AHEAD screens of entries are above the visible ones.
const OLDER = 4;
const AHEAD = 6;

// Within NEAR pixels, the view counts as being at the end.
const NEAR = 48;

export class Conversation {
  #scroller;
  #list;
  #toNewest;
  #announcer;
  #rendered;
  #controls;
  #entries = [];
  #first = 0; // the index of the first entry of the window
  #slots = []; // { element, streaming, dirty, grew } of each entry in the window
  #frameRequested = false;
  #atEnd = true;
  #top = 0;

  // Screen readers read a complete answer from announcer. rendered is called after every
  // update. controls returns the element with the controls of an entry, or null.
  constructor({ scroller, list, toNewest, announcer, rendered, controls }) {
    this.#scroller = scroller;
    this.#list = list;
    this.#toNewest = toNewest;
    this.#announcer = announcer;
    this.#rendered = rendered;
    this.#controls = controls;
    scroller.addEventListener("scroll", () => this.#scrolled(), { passive: true });
    toNewest.addEventListener("click", () => this.toEnd());
    // A card that opens at the end must stay under the pointer.
    list.addEventListener("click", ({ target }) => { if (target.closest("summary")) this.#atEnd = false; });
    list.addEventListener("toggle", () => this.#scrolled(), { capture: true });
    const sizes = new ResizeObserver(() => this.#keepEnd());
    for (const element of [scroller, ...scroller.children]) sizes.observe(element);
  }

  get streaming() {
    return this.#slots.some((slot) => slot.streaming);
  }

  // replace shows a new document.
  replace(entries, { keepPosition = false } = {}) {
    const first = keepPosition && !this.#atEnd ? this.#first : Math.max(0, entries.length - WINDOW);
    this.#entries = entries;
    this.#first = Math.min(first, entries.length);
    this.#slots = entries.slice(this.#first).map(() => ({ dirty: true }));
    this.#list.replaceChildren();
    if (!keepPosition) this.#atEnd = true;
    this.#render();
  }

  // changed shows a patch.
  changed(entries, changes) {
    this.#entries = entries;
    for (const { kind, index, text } of changes) {
      const at = index - this.#first;
      if (kind === "all") {
        this.replace(entries, { keepPosition: true });
        return;
      } else if (at < 0) {
        this.#first += { insert: 1, remove: -1 }[kind] ?? 0;
      } else if (kind === "insert") {
        this.#slots.splice(at, 0, { dirty: true });
      } else if (kind === "remove") {
        for (const { element } of this.#slots.splice(at, 1)) element?.remove();
      } else if (kind === "text" && this.#slots[at].streaming && !this.#slots[at].dirty) {
        this.#slots[at].streaming.append(text);
        this.#slots[at].grew = true;
      } else {
        this.#slots[at].dirty = true;
      }
    }
    this.#requestFrame();
  }

  // reveal shows an entry and puts the focus on a control, by default the first one.
  reveal(index, key) {
    const element = this.#elementOf(index);
    element.scrollIntoView({ block: "nearest" });
    element.querySelector(key ? `[data-key="${key}"]` : "textarea, select, button, summary")?.focus();
  }

  // mark shows an entry, and marks it until another one is marked.
  mark(index) {
    this.#atEnd = false;
    const element = this.#elementOf(index);
    this.unmark();
    element.classList.add("marked");
    element.scrollIntoView({ block: "center" });
    // The entries above have their height only when they are visible.
    requestAnimationFrame(() => element.scrollIntoView({ block: "center" }));
  }

  unmark() {
    this.#list.querySelector(".marked")?.classList.remove("marked");
  }

  #elementOf(index) {
    if (index < this.#first) {
      this.#atEnd = false; // at the end, old entries are dropped
      this.#addOlder(Math.max(WINDOW, this.#first - index));
    }
    if (this.#frameRequested) this.#render();
    return this.#slots[index - this.#first].element;
  }

  // redraw updates the controls of entries.
  redraw() {
    this.#slots.forEach(({ element }, i) => {
      const old = element?.querySelector(":scope > .controls");
      const focused = old?.contains(document.activeElement) && document.activeElement;
      old?.remove();
      if (element) this.#addControls(element, this.#entries[this.#first + i]);
      if (focused) keepFocus(focused, element);
    });
  }

  #addControls(element, entry) {
    const controls = this.#controls(entry);
    if (controls) element.append(controls);
  }

  // toEnd scrolls to the newest entry and follows it.
  toEnd() {
    this.#atEnd = true;
    this.#keepEnd();
  }

  #requestFrame() {
    if (this.#frameRequested) return;
    this.#frameRequested = true;
    requestAnimationFrame(() => this.#render());
  }

  #render() {
    this.#frameRequested = false;
    if (this.#atEnd && this.#slots.length > 3 * WINDOW) this.#dropOldest(this.#slots.length - WINDOW);
    let next = null;
    for (let i = this.#slots.length - 1; i >= 0; i--) {
      const slot = this.#slots[i];
      if (slot.dirty) this.#build(slot, this.#entries[this.#first + i], next);
      else if (slot.grew) slot.streaming.show();
      slot.grew = false;
      next = slot.element;
    }
    this.#list.setAttribute("aria-busy", this.streaming);
    this.#keepEnd();
    this.#rendered();
  }

  #build(slot, entry, next) {
    const { element: old, streaming: grew } = slot;
    const { element, streaming } = build(entry);
    const text = element.textContent;
    this.#addControls(element, entry);
    if (old) {
      const panels = element.querySelectorAll("details");
      old.querySelectorAll("details").forEach((panel, i) => panels[i] && (panels[i].open = panel.open));
      const focused = old.contains(document.activeElement) && document.activeElement;
      old.replaceWith(element);
      if (focused) keepFocus(focused, element);
    } else {
      this.#list.insertBefore(element, next);
    }
    const isAnswer = entry.content.entry_type.type === "assistant_message";
    if (grew && !streaming && isAnswer) this.#announcer.textContent = text;
    Object.assign(slot, { element, streaming, dirty: false });
  }

  #dropOldest(count) {
    for (const { element } of this.#slots.splice(0, count)) element?.remove();
    this.#first += count;
  }

  #scrolled() {
    const { scrollTop, scrollHeight, clientHeight } = this.#scroller;
    const below = scrollHeight - scrollTop - clientHeight;
    // When content grows, the view stays at the end. Scrolling up leaves it.
    if (below < NEAR) this.#atEnd = true;
    else if (scrollTop < this.#top) this.#atEnd = false;
    this.#top = scrollTop;
    this.#toNewest.hidden = this.#atEnd;
    if (scrollTop < AHEAD * clientHeight && this.#first > 0 && !this.#atEnd) this.#addOlder(OLDER);
  }

  // addOlder adds entries above without moving the visible ones.
  #addOlder(most) {
    const count = Math.min(most, this.#first);
    const anchor = this.#slots[0]?.element;
    const before = anchor?.getBoundingClientRect().top;
    this.#first -= count;
    this.#slots.unshift(...Array.from({ length: count }, () => ({ dirty: true })));
    this.#render();
    if (anchor) this.#scroller.scrollTop += anchor.getBoundingClientRect().top - before;
    this.#top = this.#scroller.scrollTop;
  }

  #keepEnd() {
    if (this.#atEnd) this.#scroller.scrollTop = this.#scroller.scrollHeight;
    this.#toNewest.hidden = this.#atEnd;
  }
}

// keepFocus moves the focus to the same control of the element that replaces another.
function keepFocus(from, element) {
  const same = from.dataset.key && element.querySelector(`[data-key="${from.dataset.key}"]`);
  const to = same || element.querySelector("summary, a, button");
  to?.focus({ preventScroll: true });
  if (same && from.selectionStart != null) same.setSelectionRange(from.selectionStart, from.selectionEnd);
}
