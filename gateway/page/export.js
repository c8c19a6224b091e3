// Saves a conversation to a file.

import { relative, request } from "./request.js";
import { parse } from "./transcript.js";

const PAGE = 1000;

// exportEvents saves the log as JSON Lines, which `starter import` reads. Files are part of it.
export async function exportEvents(name) {
  const lines = [];
  for (let path = `contexts/${encodeURIComponent(name)}/events?limit=${PAGE}`; path; ) {
    const response = await request(path);
    const { events, next } = parse(await response.text());
    for (const event of events) lines.push(`${JSON.stringify(await withData(name, event))}\n`);
    path = next && relative(next);
  }
  save(`${name}.jsonl`, "application/jsonl", lines);
}

// withData returns an event with the bytes of its file instead of a reference to them.
async function withData(name, event) {
  if (event._tag !== "FileAttachmentEvent" || !event.source?.ref) return event;
  const response = await request(`contexts/${encodeURIComponent(name)}/events/${event.id}/attachment`);
  const bytes = new Uint8Array(await response.arrayBuffer());
  let binary = "";
  for (let at = 0; at < bytes.length; at += 0x8000) binary += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return { ...event, source: { type: "blob", data: btoa(binary) } };
}

// exportMarkdown saves the messages.
export function exportMarkdown(name, entries) {
  const who = { user_message: "You", assistant_message: "Answer" };
  const parts = entries.flatMap(({ content: { entry_type: { type }, content, chunks = [], attachments = [] } }) =>
    who[type] ? [`## ${who[type]}\n\n${attachments.map((file) => `*${file.name || "file"}*\n\n`).join("")}${content}${chunks.join("")}\n\n`] : []);
  save(`${name}.md`, "text/markdown", [`# ${name}\n\n`, ...parts]);
}

export function save(file, type, parts) {
  const url = URL.createObjectURL(new Blob(parts, { type }));
  const link = document.createElement("a");
  Object.assign(link, { href: url, download: file });
  link.click();
  URL.revokeObjectURL(url);
}
