// The dialog that makes a link which reads the selected context only, and the files on the page of such a link.

import { copy } from "./copy.js";
import { $, h } from "./dom.js";
import { save } from "./export.js";
import { onSubmit, openForm } from "./form.js";
import { request } from "./request.js";

export class Share {
  #name;

  constructor() {
    $("share").addEventListener("click", () => {
      $("share-made").hidden = true;
      openForm("sharing");
    });
    onSubmit("sharing", () => this.#make());
  }

  select(name) {
    this.#name = name;
    $("sharing").close();
  }

  async #make() {
    const response = await request(`contexts/${encodeURIComponent(this.#name)}/share?days=${$("share-days").value}`, { method: "POST" });
    const { url, expiresAt } = await response.json();
    $("share-made").hidden = false;
    $("share-url").value = url;
    $("share-url").select();
    const until = `It ends on ${new Date(expiresAt).toLocaleDateString([], { dateStyle: "long" })}.`;
    $("share-note").textContent = (await copy(url)) ? `Copied. ${until}` : until;
    return true;
  }
}

// sharedFile loads the image of a file, if any, and returns a link that saves the file. A browser that loads images and opens
// links does not send the share link.
export function sharedFile(path, name, image, label) {
  const read = () => request(path).then((response) => response.blob());
  if (image) {
    read().then((blob) => (image.src = URL.createObjectURL(blob)), () => image.dispatchEvent(new Event("error")));
  }
  return h("a", { href: "", onclick: async (event) => {
    event.preventDefault();
    const blob = await read();
    save(name || "file", blob.type, [blob]);
  } }, label);
}
