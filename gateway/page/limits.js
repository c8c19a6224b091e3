// The limits of attachments. They come from the gateway, because they are higher with a blob
// store.

import { ask } from "./ask.js";
import { Backoff } from "./backoff.js";
import { bytes } from "./entry.js";

export class Limits {
  #shown;
  #other;

  // each is the maximum size of a file in bytes, together that of all files of a message.
  constructor({ attachmentBytes: each, otherAttachmentBytes: other, attachmentsBytes: together, mediaTypes }) {
    this.each = each;
    this.together = together;
    this.#other = other;
    const patterns = mediaTypes.map((type) => type.replace(/[.+]/g, "\\$&").replaceAll("*", "[^/]*"));
    this.#shown = new RegExp(`^(?:${patterns.join("|")})$`);
  }

  // ask requests the limits until the gateway responds.
  static async ask() {
    const backoff = new Backoff();
    for (;;) {
      try {
        const response = await ask("limits");
        return new Limits(await response.json());
      } catch {
        await backoff.wait(); // the conversation says when the gateway is away
      }
    }
  }

  // isShown reports whether models accept files of a type.
  isShown(type) {
    return this.#shown.test(type);
  }

  // refusal returns why a file is rejected, or undefined.
  refusal(size, type) {
    if (size > this.each) return `too large: at most ${bytes(this.each)}`;
    if (size > this.#other && !this.isShown(type)) {
      return `too large: at most ${bytes(this.#other)} for ${type}, which models cannot be shown`;
    }
  }
}
