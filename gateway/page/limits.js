// The limits of attachments. They depend on the gateway's blob store.

import { request } from "./request.js";
import { Backoff } from "./backoff.js";
import { bytes } from "./entry.js";

export class Limits {
  #accepted;
  #maxOtherBytes;

  // maxBytes limits a file, maxTotalBytes all files of a message.
  constructor({ attachmentBytes, otherAttachmentBytes, attachmentsBytes, mediaTypes }) {
    this.maxBytes = attachmentBytes;
    this.maxTotalBytes = attachmentsBytes;
    this.#maxOtherBytes = otherAttachmentBytes;
    const patterns = mediaTypes.map((type) => type.replace(/[.+]/g, "\\$&").replaceAll("*", "[^/]*"));
    this.#accepted = new RegExp(`^(?:${patterns.join("|")})$`);
  }

  // load requests the limits until the gateway responds.
  static async load() {
    const backoff = new Backoff();
    for (;;) {
      try {
        const response = await request("limits");
        return new Limits(await response.json());
      } catch {
        await backoff.wait(); // the banner reports the error
      }
    }
  }

  // isAccepted reports whether models accept files of a type.
  isAccepted(type) {
    return this.#accepted.test(type);
  }

  // check returns the error of a file, or undefined.
  check(size, type) {
    if (size > this.maxBytes) return `too large: at most ${bytes(this.maxBytes)}`;
    if (size > this.#maxOtherBytes && !this.isAccepted(type)) {
      return `too large: at most ${bytes(this.#maxOtherBytes)} for ${type}, which models do not accept`;
    }
  }
}
