// The box to type in, and the files that go with what is typed.

import { $, h } from "./dom.js";
import { bytes } from "./entry.js";

// LARGEST is how long a file may be that is sent along. With a blob store the
// gateway takes longer ones; the page does not know of it.
const LARGEST = 1 << 20;

export class Composer {
  #files = []; // { file, data, trouble, preview }
  #drafts = new Map(); // by context
  #name;

  // send is called with a text and the events for its files.
  constructor(send) {
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
    text.addEventListener("input", () => this.#ready());
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

  // look brings out what was being written to a context.
  look(name) {
    if (this.#name) this.#drafts.set(this.#name, { text: $("text").value, files: this.#files });
    this.#name = name;
    const { text = "", files = [] } = this.#drafts.get(name) ?? {};
    $("text").value = text;
    this.#files = files;
    this.#show();
  }

  // edit puts a text before what is being written.
  edit(text) {
    $("text").value = [text, $("text").value].filter(Boolean).join("\n");
    this.#ready();
    $("text").focus();
  }

  // attach takes files along.
  async attach(files) {
    for (const file of [...files]) {
      const item = { file };
      this.#files.push(item);
      if (file.size > LARGEST) item.trouble = `${bytes(file.size)}; at most ${bytes(LARGEST)}`;
      else if (file.size === 0) item.trouble = "empty";
      else Object.assign(item, await read(file));
    }
    this.#show();
  }

  #submit(send) {
    const text = $("text").value.trim();
    if (!text || this.#files.some((item) => item.trouble)) return;
    const attachments = this.#files.map(({ file, data, type }) => ({
      _tag: "FileAttachmentEvent",
      source: { type: "blob", data },
      mediaType: type,
      fileName: file.name,
      size: file.size,
    }));
    this.#files = [];
    $("text").value = "";
    this.#show();
    send(text, attachments);
  }

  #show() {
    $("files").replaceChildren(...this.#files.map((item) =>
      h("li", { class: item.trouble ? "refused" : "" },
        item.type?.startsWith("image/") && h("img", { src: `data:${item.type};base64,${item.data}`, alt: "" }),
        h("span", null, item.file.name),
        h("span", { class: "state" }, item.trouble ?? bytes(item.file.size)),
        h("button", { type: "button", class: "quiet", "aria-label": `Leave out ${item.file.name}`, onclick: () => this.#leaveOut(item) }, "×"))));
    this.#ready();
  }

  #leaveOut(item) {
    this.#files = this.#files.filter((other) => other !== item);
    this.#show();
    $("text").focus();
  }

  #ready() {
    $("send").disabled = !$("text").value.trim() || this.#files.some((item) => item.trouble);
  }
}

// read returns the bytes of a file in base64, and its type: text is text, whatever
// the system calls it.
async function read(file) {
  const url = await new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
  const type = file.type || ((await isText(file)) ? "text/plain" : "application/octet-stream");
  return { data: url.slice(url.indexOf(",") + 1), type };
}

async function isText(file) {
  try {
    return !new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer()).includes("\0");
  } catch {
    return false;
  }
}
