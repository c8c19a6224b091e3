// The transcript of a context, kept up to date: the gateway sends a document and
// then patches to it.

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

  // apply carries out a JSON Patch and returns what it did to the entries, in its
  // order: { kind: "insert" | "remove" | "change" | "text", index, text }, or
  // { kind: "all" }.
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

// follow keeps a transcript up to date until it is aborted. It survives lost
// connections and other gateways: it goes on from the version it has, or gets
// another document. The viewer is told by
//
//	all(entries)              there is another document
//	changed(entries, changes) a patch was applied
//	does({ status, since })   what the context is doing has changed
//	connected(yes, why)
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
            // What fails in the middle has no version: the document comes again.
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
