// The input box and its attachments. A reload of the page keeps the text only.

import { $, h } from "./dom.js";
import { bytes } from "./entry.js";
import { load, store } from "./storage.js";
import { Limits } from "./limits.js";

export class Composer {
  #files = []; // { name, size, event, error, thumbnail }; event, error and thumbnail are unset while the file is read
  #totalBytes = 0; // of files that were read
  #drafts = new Map(); // by context
  #name;
  #limits = Limits.load();
  #maxTotalBytes = Infinity; // until the limits are loaded

  // send receives the events of a message, attachments first.
  constructor(send) {
    this.#limits.then(({ maxBytes, maxTotalBytes }) => {
      this.#maxTotalBytes = maxTotalBytes;
      $("attach").title = `Attach files, up to ${bytes(maxBytes)} each`;
      this.#show();
    });
    const text = $("text");
    $("composer").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#submit(send);
    });
    text.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        this.#submit(send);
      }
    });
    text.addEventListener("input", () => this.#changed());
    text.addEventListener("paste", (event) => {
      if (event.clipboardData.files.length === 0) return;
      event.preventDefault();
      this.attach(event.clipboardData.files);
    });
    $("attach").addEventListener("click", () => $("picker").click());
    $("picker").addEventListener("change", (event) => {
      this.attach(event.target.files);
      event.target.value = "";
    });
    addEventListener("dragover", (event) => {
      if (!event.dataTransfer.types.includes("Files")) return;
      event.preventDefault();
      $("composer").classList.add("drop");
    });
    addEventListener("dragleave", (event) => event.relatedTarget ?? $("composer").classList.remove("drop"));
    addEventListener("drop", (event) => {
      $("composer").classList.remove("drop");
      if (event.dataTransfer.files.length === 0) return;
      event.preventDefault();
      if (this.#name) this.attach(event.dataTransfer.files);
    });
  }

  // select restores the draft of a context.
  select(name) {
    if (this.#name) this.#drafts.set(this.#name, { text: $("text").value, files: this.#files });
    this.#name = name;
    const { text, files } = this.#drafts.get(name) ?? { text: load(draftKey(name)) ?? "", files: [] };
    $("text").value = text;
    this.#files = files;
    this.#show();
  }

  // forget removes the draft of a deleted context.
  forget(name) {
    if (name === this.#name) {
      $("text").value = "";
      this.#files = [];
      this.#show();
    }
    this.#drafts.delete(name);
    store(draftKey(name), undefined);
  }

  // edit inserts the events of a message before the draft.
  edit(events) {
    const attachments = events.filter((event) => event._tag === "FileAttachmentEvent");
    this.#files = [...attachments.map((event) => ({ name: event.fileName, size: event.size, event })), ...this.#files];
    $("text").value = [events.at(-1).content, $("text").value].filter(Boolean).join("\n");
    this.#show();
    $("text").focus();
  }

  attach(files) {
    for (const file of files) {
      const item = { name: file.name, size: file.size };
      this.#files.push(item);
      this.#read(item, file);
    }
    this.#show();
  }

  async #read(item, file) {
    Object.assign(item, await attachment(file, await this.#limits));
    this.#show();
  }

  #submit(send) {
    if (!this.#isReady) return;
    const events = [...this.#files.map((item) => item.event), { _tag: "UserMessageEvent", content: $("text").value.trim() }];
    this.#files = [];
    $("text").value = "";
    this.#show();
    send(events);
  }

  #show() {
    this.#totalBytes = 0;
    $("files").replaceChildren(...this.#files.map((item) => {
      const { name, size, event } = item;
      if (event) this.#totalBytes += size;
      const error = item.error ?? (this.#isOverTotal && `too large in total: at most ${bytes(this.#maxTotalBytes)} per message`);
      return h("li", { class: error && "rejected" },
        event ? (item.thumbnail ??= thumbnailOf(item)) : thumbnailOf(item),
        h("span", { class: "name", dir: "auto" }, name),
        h("span", { class: "state" }, error || (event ? bytes(size) : "reading…")),
        h("button", { type: "button", class: "quiet", "aria-label": `Remove ${name}`, onclick: () => this.#remove(item) }, "×"));
    }));
    this.#changed();
  }

  #remove(item) {
    this.#files = this.#files.filter((other) => other !== item);
    this.#show();
    $("text").focus();
  }

  #changed() {
    if (this.#name) store(draftKey(this.#name), $("text").value || undefined);
    $("send").disabled = !this.#isReady;
  }

  get #isReady() {
    return ($("text").value.trim() !== "" || this.#files.length > 0) && this.#files.every((item) => item.event) && !this.#isOverTotal;
  }

  get #isOverTotal() {
    return this.#totalBytes > this.#maxTotalBytes;
  }
}

// thumbnailOf returns the picture of an image, or the extension of another file.
function thumbnailOf(item) {
  const { name, event } = item;
  const extension = h("span", { class: "thumbnail", "aria-hidden": "true" }, /\.([^.]{1,4})$/.exec(name)?.[1].toUpperCase() ?? "FILE");
  if (!event?.mediaType.startsWith("image/")) return extension;
  const src = `data:${event.mediaType};base64,${event.source.data}`;
  return h("img", { class: "thumbnail", src, alt: "", onerror: ({ target }) => target.replaceWith((item.thumbnail = extension)) });
}

const draftKey = (name) => `draft:${name}`;

// attachment returns the event for a file, or an error.
async function attachment(file, limits) {
  try {
    const mediaType = await typeOf(file, limits);
    const error = limits.check(file.size, mediaType);
    if (error) return { error };
    const data = await base64(file);
    if (!data) return { error: "empty" };
    return { event: { _tag: "FileAttachmentEvent", source: { type: "blob", data }, mediaType, fileName: file.name, size: file.size } };
  } catch {
    return { error: "cannot be read (deleted, or a folder)" };
  }
}

async function base64(file) {
  const url = await new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
  return url.slice(url.indexOf(",") + 1);
}

// The first HEAD bytes of a file decide whether it is text.
const HEAD = 1 << 16;

// typeOf returns the media type of a file. Text with a type that models do not accept, such
// as video/mp2t for TypeScript, becomes text/plain.
async function typeOf(file, limits) {
  const type = file.type || "application/octet-stream";
  if (limits.isAccepted(type)) return type;
  const head = await file.slice(0, HEAD).arrayBuffer();
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(head, { stream: true }).includes("\0") ? type : "text/plain";
  } catch {
    return type;
  }
}
