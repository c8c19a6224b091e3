// The input box and its attachments. The text survives a reload of the page, attachments
// do not.

import { $, h } from "./dom.js";
import { bytes } from "./entry.js";
import { keep, kept } from "./kept.js";
import { Limits } from "./limits.js";

export class Composer {
  #files = []; // { name, size, event, trouble, image }; one with neither event nor trouble is being read
  #sum = 0; // bytes of those that were read
  #drafts = new Map(); // by context
  #name;
  #limits = Limits.ask();
  #together = Infinity; // how many there may be, once it is known

  // send is called with the events of a message, attachments first.
  constructor(send) {
    this.#limits.then(({ each, together }) => {
      this.#together = together;
      $("attach").title = `Attach files, up to ${bytes(each)} each`;
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

  // look restores the draft of a context.
  look(name) {
    if (this.#name) this.#drafts.set(this.#name, { text: $("text").value, files: this.#files });
    this.#name = name;
    const { text, files } = this.#drafts.get(name) ?? { text: kept(draft(name)) ?? "", files: [] };
    $("text").value = text;
    this.#files = files;
    this.#show();
  }

  // edit inserts the events of a message before the draft.
  edit(events) {
    const attachments = events.filter((event) => event._tag === "FileAttachmentEvent");
    this.#files = [...attachments.map((event) => ({ name: event.fileName, size: event.size, event })), ...this.#files];
    $("text").value = [events.at(-1).content, $("text").value].filter(Boolean).join("\n");
    this.#show();
    $("text").focus();
  }

  // attach adds files once they are read.
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
    this.#sum = 0;
    $("files").replaceChildren(...this.#files.map((item) => {
      const { name, size, event } = item;
      if (event) this.#sum += size;
      const trouble = item.trouble ?? (this.#tooMuch && `too large in total: at most ${bytes(this.#together)} per message`);
      return h("li", { class: trouble && "refused" },
        event?.mediaType.startsWith("image/") && (item.image ??= h("img", { src: `data:${event.mediaType};base64,${event.source.data}`, alt: "" })),
        h("span", { class: "name" }, name),
        h("span", { class: "state" }, trouble || (event ? bytes(size) : "reading…")),
        h("button", { type: "button", class: "quiet", "aria-label": `Remove ${name}`, onclick: () => this.#leaveOut(item) }, "×"));
    }));
    this.#changed();
  }

  #leaveOut(item) {
    this.#files = this.#files.filter((other) => other !== item);
    this.#show();
    $("text").focus();
  }

  #changed() {
    if (this.#name) keep(draft(this.#name), $("text").value || undefined);
    $("send").disabled = !this.#isReady;
  }

  get #isReady() {
    return $("text").value.trim() !== "" && this.#files.every((item) => item.event) && !this.#tooMuch;
  }

  get #tooMuch() {
    return this.#sum > this.#together;
  }
}

// draft is the storage key of a context's draft.
const draft = (name) => `draft:${name}`;

// attachment returns the event for a file, or an error.
async function attachment(file, limits) {
  try {
    const mediaType = await typeOf(file, limits);
    const trouble = limits.refusal(file.size, mediaType);
    if (trouble) return { trouble };
    const data = await base64(file);
    if (!data) return { trouble: "empty" };
    return { event: { _tag: "FileAttachmentEvent", source: { type: "blob", data }, mediaType, fileName: file.name, size: file.size } };
  } catch {
    return { trouble: "cannot be read: it may be deleted, or a folder" };
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

// HEAD is how many bytes of a file are checked for being text.
const HEAD = 1 << 16;

// typeOf returns the media type of a file. A type that models do not accept, such as
// video/mp2t for TypeScript, is replaced by text if the content is text.
async function typeOf(file, limits) {
  const type = file.type || "application/octet-stream";
  if (limits.isShown(type)) return type;
  const head = await file.slice(0, HEAD).arrayBuffer();
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(head, { stream: true }).includes("\0") ? type : "text/plain";
  } catch {
    return type;
  }
}
