// Follows the transcript of a context: a document, then patches.

import { applyOperation } from "./lib/fast-json-patch/core.mjs";
import { Problem } from "./request.js";
import { events } from "./sse.js";
import { Backoff } from "./backoff.js";

export class Transcript {
  document = { entries: [] };
  version; // undefined: none

  get entries() {
    return this.document.entries;
  }

  // apply applies a JSON Patch and returns the changes to entries, in order:
  // { kind: "insert" | "remove" | "change" | "text", index, text }, or { kind: "all" }.
  apply(patch) {
    return patch.map((operation) => {
      const change = changeOf(operation, this.entries.length);
      this.document = applyOperation(this.document, operation, true).newDocument;
      return change;
    });
  }
}

// Numbers that may lose digits: with 16 characters or an exponent.
const LONG = /\d[\d.]{15}|\d[eE]/;

// parse keeps the digits of numbers for display: JSON.stringify writes them as they were. Browsers
// without JSON.rawJSON round them.
export function parse(text) {
  if (!JSON.rawJSON || !LONG.test(text)) return JSON.parse(text);
  return JSON.parse(text, (_, value, { source }) =>
    typeof value === "number" && String(value) !== source ? JSON.rawJSON(source) : value);
}

function changeOf({ op, path, value }, length) {
  const [, list, at, ...inside] = path.split("/");
  const index = at === "-" ? length : Number(at);
  if (list !== "entries" || at === undefined || op === "move" || op === "copy") return { kind: "all" };
  if (inside.length === 0) return { kind: { add: "insert", remove: "remove" }[op] ?? "change", index };
  if (op === "add" && inside.join("/") === "content/chunks/-") return { kind: "text", index, text: value };
  return { kind: "change", index };
}

// follow keeps a transcript up to date until it is aborted or the context is deleted. After a reconnection it resumes from its
// version or gets a new document. It calls the viewer:
//
//	replaced(entries)                         a new document arrived
//	changed(entries, changes)                 a patch was applied
//	statusChanged({ status, since, budget, noWorkerSince, stored })
//	                                          the status of the context, or what waits for a worker, changed
//	connected(yes, reason)                    the connection was established or lost
//	deleted()                                 the context was deleted for ever
export async function follow(name, viewer, signal) {
  const transcript = new Transcript();
  const backoff = new Backoff(signal);
  while (!signal.aborted) {
    let delay;
    try {
      const headers = transcript.version ? { "Last-Event-ID": transcript.version } : {};
      for await (const { id, type, data } of events(`contexts/${encodeURIComponent(name)}/transcript`, { headers, signal })) {
        switch (type) {
          case "open":
            backoff.reset();
            viewer.connected(true);
            break;
          case "retry":
            delay = Number(data);
            break;
          case "document":
            transcript.document = parse(data).document;
            transcript.version = id;
            viewer.replaced(transcript.entries);
            break;
          case "status":
            viewer.statusChanged(parse(data));
            break;
          case "patch": {
            // A patch that fails leaves no valid version, so the document is requested again.
            transcript.version = undefined;
            const changes = transcript.apply(parse(data));
            transcript.version = id;
            viewer.changed(transcript.entries, changes);
            break;
          }
          case "problem": {
            const { title, type, status } = JSON.parse(data);
            throw new Problem(status, { title, type });
          }
        }
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error.isDeleted) return viewer.deleted();
      viewer.connected(false, error.message);
    }
    await backoff.wait(delay);
  }
}
