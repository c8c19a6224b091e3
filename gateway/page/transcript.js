// Follows the transcript of a context: the gateway sends a document and then patches.

import { applyOperation } from "./lib/fast-json-patch/core.mjs";
import { events } from "./sse.js";
import { Backoff } from "./backoff.js";

// Transcript is a document and its version.
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

function changeOf({ op, path, value }, length) {
  const [, list, at, ...inside] = path.split("/");
  const index = at === "-" ? length : Number(at);
  if (list !== "entries" || at === undefined || op === "move" || op === "copy") return { kind: "all" };
  if (inside.length === 0) return { kind: { add: "insert", remove: "remove" }[op] ?? "change", index };
  if (op === "add" && inside.join("/") === "content/chunks/-") return { kind: "text", index, text: value };
  return { kind: "change", index };
}

// follow keeps a transcript up to date until it is aborted. After a lost connection, or with another
// gateway, it continues from its version or gets a new document. It calls the viewer:
//
//	all(entries)              there is a new document
//	changed(entries, changes) a patch was applied
//	does({ status, since })   the status of the context changed
//	connected(yes, why)       the connection was established or lost
export async function follow(name, viewer, signal) {
  const transcript = new Transcript();
  const backoff = new Backoff(signal);
  while (!signal.aborted) {
    let hint;
    try {
      const headers = transcript.version ? { "Last-Event-ID": transcript.version } : {};
      for await (const { id, type, data } of events(`contexts/${encodeURIComponent(name)}/transcript`, { headers, signal })) {
        switch (type) {
          case "open":
            backoff.reset();
            viewer.connected(true);
            break;
          case "retry":
            hint = Number(data);
            break;
          case "document":
            transcript.document = JSON.parse(data).document;
            transcript.version = id;
            viewer.all(transcript.entries);
            break;
          case "status":
            viewer.does(JSON.parse(data));
            break;
          case "patch": {
            // After a failure within a patch the version is unknown: request the document again.
            transcript.version = undefined;
            const changes = transcript.apply(JSON.parse(data));
            transcript.version = id;
            viewer.changed(transcript.entries, changes);
            break;
          }
          case "problem":
            throw new Error(JSON.parse(data).title);
        }
      }
    } catch (error) {
      if (signal.aborted) return;
      viewer.connected(false, error.message);
    }
    await backoff.wait(hint);
  }
}
