// How long files may be, which only the gateway knows: with a blob store contexts
// take longer ones.

import { ask } from "./ask.js";
import { Backoff } from "./backoff.js";
import { bytes } from "./entry.js";

export class Limits {
  #shown;
  #other;

  // each is how many bytes any file may have, together all files of a message.
  constructor({ attachmentBytes: each, otherAttachmentBytes: other, attachmentsBytes: together, mediaTypes }) {
    this.each = each;
    this.together = together;
    this.#other = other;
    const patterns = mediaTypes.map((type) => type.replace(/[.+]/g, "\\$&").replaceAll("*", "[^/]*"));
    this.#shown = new RegExp(`^(?:${patterns.join("|")})$`);
  }

  // ask asks the gateway until it answers.
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

  // isShown says whether models can be shown files of a type.
  isShown(type) {
    return this.#shown.test(type);
  }

  // refusal says why a file is not taken; nothing if it is.
  refusal(size, type) {
    if (size > this.each) return `too large: at most ${bytes(this.each)}`;
    if (size > this.#other && !this.isShown(type)) {
      return `too large: at most ${bytes(this.#other)} of ${type}, which models cannot be shown`;
    }
  }
}
