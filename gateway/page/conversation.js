// The view of a conversation. Only a window of entries, up to the newest, has elements;
// scrolling up adds older ones. A change updates only the entries it names, once per
// frame.

import { build } from "./entry.js";

// WINDOW is how many entries are shown at first, and how many are added when scrolling
// up.
const WINDOW = 100;

// NEAR is the distance in pixels that counts as being at the end.
const NEAR = 48;

export class Conversation {
  #scroller;
  #list;
  #toNewest;
  #spoken;
  #shown;
  #entries = [];
  #first = 0; // the index of the first entry of the window
  #slots = []; // for each entry of the window { element, growing, dirty }
  #framed = false;
  #atEnd = true;
  #top = 0;

  // Screen readers announce an answer when it is complete. shown is called after every
  // update.
  constructor({ scroller, list, toNewest, spoken, shown }) {
    this.#scroller = scroller;
    this.#list = list;
    this.#toNewest = toNewest;
    this.#spoken = spoken;
    this.#shown = shown;
    scroller.addEventListener("scroll", () => this.#scrolled(), { passive: true });
    toNewest.addEventListener("click", () => this.toEnd());
    // A card that is opened at the end must not scroll away from the pointer.
    list.addEventListener("click", ({ target }) => { if (target.closest("summary")) this.#atEnd = false; });
    list.addEventListener("toggle", () => this.#scrolled(), { capture: true });
    new ResizeObserver(() => this.#keepEnd()).observe(list);
    new ResizeObserver(() => this.#keepEnd()).observe(scroller);
  }

  // streaming reports whether an entry is streaming.
  get streaming() {
    return this.#slots.some((slot) => slot.growing);
  }

  // all shows a new document.
  all(entries, { keepPlace = false } = {}) {
    const place = keepPlace && !this.#atEnd ? this.#first : Math.max(0, entries.length - WINDOW);
    this.#entries = entries;
    this.#first = Math.min(place, entries.length);
    this.#slots = entries.slice(this.#first).map(() => ({ dirty: true }));
    this.#list.replaceChildren();
    if (!keepPlace) this.#atEnd = true;
    this.#frame();
  }

  // changed shows the changes of a patch.
  changed(entries, changes) {
    this.#entries = entries;
    for (const { kind, index, text } of changes) {
      const at = index - this.#first;
      if (kind === "all") {
        this.all(entries, { keepPlace: true });
        return;
      } else if (at < 0) {
        this.#first += { insert: 1, remove: -1 }[kind] ?? 0;
      } else if (kind === "insert") {
        this.#slots.splice(at, 0, { dirty: true });
      } else if (kind === "remove") {
        for (const { element } of this.#slots.splice(at, 1)) element?.remove();
      } else if (kind === "text" && this.#slots[at].growing && !this.#slots[at].dirty) {
        this.#slots[at].growing.append(text);
        this.#slots[at].grew = true;
      } else {
        this.#slots[at].dirty = true;
      }
    }
    this.#later();
  }

  // toEnd scrolls to the newest entry and follows it.
  toEnd() {
    this.#atEnd = true;
    this.#keepEnd();
  }

  #later() {
    if (this.#framed) return;
    this.#framed = true;
    requestAnimationFrame(() => this.#frame());
  }

  #frame() {
    this.#framed = false;
    if (this.#atEnd && this.#slots.length > 3 * WINDOW) this.#forget(this.#slots.length - WINDOW);
    let next = null;
    for (let i = this.#slots.length - 1; i >= 0; i--) {
      const slot = this.#slots[i];
      if (slot.dirty) this.#build(slot, this.#entries[this.#first + i], next);
      else if (slot.grew) slot.growing.show();
      slot.grew = false;
      next = slot.element;
    }
    this.#list.setAttribute("aria-busy", this.streaming);
    this.#keepEnd();
    this.#shown();
  }

  #build(slot, entry, next) {
    const { element: old, growing: grew } = slot;
    const { element, growing } = build(entry);
    if (old) {
      const folds = element.querySelectorAll("details");
      old.querySelectorAll("details").forEach((fold, i) => folds[i] && (folds[i].open = fold.open));
      const focused = old.contains(document.activeElement);
      old.replaceWith(element);
      if (focused) element.querySelector("summary, a, button")?.focus({ preventScroll: true });
    } else {
      this.#list.insertBefore(element, next);
    }
    if (grew && !growing) this.#spoken.textContent = element.textContent;
    Object.assign(slot, { element, growing, dirty: false });
  }

  // forget removes the oldest entries from the window.
  #forget(count) {
    for (const { element } of this.#slots.splice(0, count)) element?.remove();
    this.#first += count;
  }

  #scrolled() {
    const { scrollTop, scrollHeight, clientHeight } = this.#scroller;
    const below = scrollHeight - scrollTop - clientHeight;
    // Only scrolling up leaves the end, not content that grows.
    if (below < NEAR) this.#atEnd = true;
    else if (scrollTop < this.#top) this.#atEnd = false;
    this.#top = scrollTop;
    this.#toNewest.hidden = this.#atEnd;
    if (scrollTop < clientHeight && this.#first > 0 && !this.#atEnd) this.#older();
  }

  // older adds older entries above without moving the visible ones.
  #older() {
    const count = Math.min(WINDOW, this.#first);
    const anchor = this.#slots[0]?.element;
    const before = anchor?.getBoundingClientRect().top;
    this.#first -= count;
    this.#slots.unshift(...Array.from({ length: count }, () => ({ dirty: true })));
    this.#frame();
    if (anchor) this.#scroller.scrollTop += anchor.getBoundingClientRect().top - before;
    this.#top = this.#scroller.scrollTop;
  }

  #keepEnd() {
    if (this.#atEnd) this.#scroller.scrollTop = this.#scroller.scrollHeight;
    this.#toNewest.hidden = this.#atEnd;
  }
}
