// The view of a conversation. It has an element for each entry of a window, which
// ends at the newest entry: older ones come when somebody scrolls up to them. A
// change touches the elements of the entries it names, once per frame.

import { build } from "./entry.js";

// WINDOW is how many entries are shown at first, and how many older ones come at
// once.
const WINDOW = 100;

// NEAR is how many pixels from an end count as being there.
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

  // What was an answer in the making is spoken when it is complete; shown is called
  // whenever there was something new to show.
  constructor({ scroller, list, toNewest, spoken, shown }) {
    this.#scroller = scroller;
    this.#list = list;
    this.#toNewest = toNewest;
    this.#spoken = spoken;
    this.#shown = shown;
    scroller.addEventListener("scroll", () => this.#scrolled(), { passive: true });
    toNewest.addEventListener("click", () => this.toEnd());
    new ResizeObserver(() => this.#keepEnd()).observe(list);
    new ResizeObserver(() => this.#keepEnd()).observe(scroller);
  }

  // streaming says whether an entry grows.
  get streaming() {
    return this.#slots.some((slot) => slot.growing);
  }

  // all shows another document.
  all(entries, { keepPlace = false } = {}) {
    const place = keepPlace && !this.#atEnd ? this.#first : Math.max(0, entries.length - WINDOW);
    this.#entries = entries;
    this.#first = Math.min(place, entries.length);
    this.#slots = entries.slice(this.#first).map(() => ({ dirty: true }));
    this.#list.replaceChildren();
    if (!keepPlace) this.#atEnd = true;
    this.#frame();
  }

  // changed shows what a patch did.
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

  // toEnd goes to the newest entry and stays there.
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

  // forget takes the oldest entries out of the window.
  #forget(count) {
    for (const { element } of this.#slots.splice(0, count)) element?.remove();
    this.#first += count;
  }

  #scrolled() {
    const { scrollTop, scrollHeight, clientHeight } = this.#scroller;
    const below = scrollHeight - scrollTop - clientHeight;
    // What grows above or below moves nobody away from the end: only going up does.
    if (below < NEAR) this.#atEnd = true;
    else if (scrollTop < this.#top) this.#atEnd = false;
    this.#top = scrollTop;
    this.#toNewest.hidden = this.#atEnd;
    if (scrollTop < clientHeight && this.#first > 0 && !this.#atEnd) this.#older();
  }

  // older puts older entries above, and leaves in place what is seen.
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
