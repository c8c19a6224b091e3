// The page of the gateway: a list of contexts, and the conversation of the context in
// the URL fragment, like /#demo, or /#demo:0007 for a message in it.
//
//	contexts.js      the list
//	search.js        searches it and messages
//	transcript.js    follows a transcript: a document and its patches
//	conversation.js  renders it; entry.js and markdown.js create the elements
//	highlight.js     colors code, with the worker highlighter.js; math.js shows formulas; scripts.js loads both
//	actions.js       copies, retries and sends messages again
//	branches.js      edits messages, regenerates answers, and switches between alternatives; compare.js compares them
//	callform.js      the forms on the cards of calls that wait: approvals.js, questions.js
//	composer.js      the input box; limits.js checks attachments
//	outbox.js        sends messages
//	details.js, settings.js, export.js, share.js, deletion.js    the menu of the context; link.js follows a share link
//	tools.js         hides the calls of tools
//	dom.js           creates elements; visible.js shows hidden characters
//	signin.js        signing in and out, and roles
//	request.js, sse.js, backoff.js, money.js, time.js, storage.js, copy.js, form.js, theme.js    utilities
//	lib/             third-party libraries

import { Actions } from "./actions.js";
import { Branches } from "./branches.js";
import { selectCalls, waitsFor } from "./callform.js";
import { Compare } from "./compare.js";
import { newKey, request } from "./request.js";
import { $, h } from "./dom.js";
import { Composer } from "./composer.js";
import { Contexts, headline, validName } from "./contexts.js";
import { Conversation } from "./conversation.js";
import { Deletion } from "./deletion.js";
import { Details } from "./details.js";
import { build } from "./entry.js";
import { exportEvents, exportMarkdown } from "./export.js";
import { spending } from "./money.js";
import { Outbox } from "./outbox.js";
import { Search } from "./search.js";
import { Settings } from "./settings.js";
import { Share } from "./share.js";
import { arrive, may } from "./signin.js";
import "./tools.js";
import { follow } from "./transcript.js";
import { visible } from "./visible.js";

const sharedContext = await arrive();

const conversation = new Conversation({
  scroller: $("scroller"), list: $("entries"), toNewest: $("newest"), announcer: $("announcer"),
  rendered: () => showStatus(),
  controls(entry) {
    const controls = branches.form(entry) ?? [...branches.controls(entry), ...actions.controls(entry)].filter(Boolean);
    return [controls].flat().length > 0 ? h("div", { class: "controls" }, controls) : null;
  },
});
const branches = new Branches({
  redraw: () => conversation.redraw(),
  reveal: (id, key) => conversation.reveal(shown.findIndex(({ content }) => content.event_id === id), key),
  send: (name, events) => outbox.add(name, events),
  models: () => contexts.models,
  compare: (choice, name) => compare.open(choice, name),
});
const compare = new Compare((name) => headline(contexts.summaryOf(name)));
const actions = new Actions({
  redraw: () => conversation.redraw(),
  send: (events) => outbox.add(current, events),
  edit: (events) => composer.edit(events),
});
const contexts = new Contexts({
  changed: () => {
    details.show();
    showStatus();
    branches.related(contexts.related(current));
  },
  connected: (yes, reason) => showError("list", connectionError(yes, reason)), // the stream does not report a Temporal outage
});
const outbox = new Outbox({ edit: (events) => composer.edit(events), sent: () => contexts.refresh() });
const composer = new Composer((events) => {
  outbox.add(current, events);
  conversation.toEnd();
});

const deletion = new Deletion({
  started(name) {
    composer.forget(name);
    contexts.remove(name);
    if (name === current) location.hash = "";
    contexts.refresh();
  },
});
const details = new Details(contexts, (text) => showError("details", text));
const settings = new Settings(() => shown);
const share = new Share();
new Search(contexts);

// The Stop button is hidden after IDLE_DELAY ms without an answer, so that it does not
// flicker between an interrupted answer and the next one.
const IDLE_DELAY = 150;

let current; // the selected context
let sought; // the number of the event of a message to mark when it is shown; undefined: none
let shown = []; // its entries
let following; // the AbortController of its stream
let idleTimer;

function open() {
  const [name, at] = (sharedContext ?? location.hash.slice(1)).split(":"); // names need no URL encoding
  sought = Number(at) || undefined;
  conversation.unmark();
  if (name === current) return mark();
  following?.abort();
  clearTimeout(idleTimer);
  following = new AbortController();
  current = validName(name) ? name : undefined;
  if (!current) document.title = "Chronicle";
  document.body.classList.toggle("open", Boolean(current));
  $("budget").textContent = "";
  $("empty").hidden = true;
  selectCalls(current);
  shown = [];
  branches.select(current);
  conversation.replace([]);
  showUnattended({});
  showWaiting([]);
  showError("stream", "");
  showError("stop", "");
  showError("details", "");
  contexts.select(current);
  details.select(current);
  settings.select(current);
  share.select(current);
  compare.select();
  composer.select(current);
  outbox.select(current);
  deletion.select(current);
  showStatus();
  if (!current) return;
  follow(current, viewer, following.signal);
  // On a phone the keyboard would cover the conversation.
  if (!matchMedia("(pointer: coarse)").matches && may("write")) $("text").focus();
}

// mark shows the message that the address names.
function mark() {
  if (sought === undefined) return;
  const index = shown.findIndex(({ content: { event_id: id } }) => id && Number(id.slice(id.lastIndexOf(":") + 1)) === sought);
  if (index < 0) return;
  sought = undefined;
  conversation.mark(index);
}

const viewer = {
  replaced(entries) {
    shown = entries;
    showEmpty(entries);
    conversation.replace(entries, { keepPosition: true });
    showWaiting(entries);
    branches.update(entries);
    actions.update(entries, isAnswering());
    mark();
  },
  changed(entries, changes) {
    shown = entries;
    showEmpty(entries);
    conversation.changed(entries, changes);
    if (changes.every(({ kind }) => kind === "text")) return;
    showWaiting(entries);
    branches.update(entries);
    actions.update(entries, isAnswering());
    mark();
  },
  statusChanged(streamed) {
    clearTimeout(idleTimer);
    if (sharedContext) contexts.update(current, streamed.details ?? {}); // the list is not shared
    $("budget").textContent = streamed.budget ? spending(streamed.budget) : "";
    // In the frame in which the conversation shows a recorded message.
    const context = current;
    requestAnimationFrame(() => context === current && showUnattended(streamed));
    const update = () => contexts.setStreamed(current, streamed);
    if (streamed.status === "idle" && contexts.statusOf(current) === "answering") idleTimer = setTimeout(update, IDLE_DELAY);
    else update();
  },
  connected(yes, reason) {
    clearTimeout(idleTimer);
    if (!yes) contexts.setStreamed(current);
    showError("stream", connectionError(yes, reason));
  },
  deleted() {
    clearTimeout(idleTimer);
    shown = [];
    conversation.replace([]);
    showWaiting([]);
    showUnattended({});
    contexts.setStreamed(current, { status: "deleted" });
    contexts.remove(current);
    showError("stream", "This conversation was deleted.");
  },
};

let isEmpty = true; // the log
let storedCount = 0;
let isUnattended = false; // the context waits for a worker, which may be down or busy

function showEmpty(entries) {
  isEmpty = entries.length === 0;
  $("empty").hidden = !isEmpty || storedCount > 0;
}

// showUnattended shows what waits for a worker.
function showUnattended({ stored = [], noWorkerSince, status }) {
  storedCount = stored.length;
  $("stored").replaceChildren(...stored.map((item) => build(item).element));
  if (storedCount > 0) $("empty").hidden = true;
  isUnattended = Boolean(noWorkerSince);
  document.body.classList.toggle("unattended", isUnattended);
  const text = isUnattended
    ? `${storedCount > 0 ? "Stored in Temporal. " : status === "answering" ? "The answer waits. " : ""}No worker has taken it yet.`
    : storedCount > 0 ? "Stored in Temporal, waiting for a worker." : "";
  $("unattended").hidden = !text;
  if ($("unattended").textContent !== text) $("unattended").textContent = text; // a screen reader reads changes
  showStatus();
}

function connectionError(connected, reason) {
  if (connected) return "";
  return navigator.onLine ? `Not connected: ${reason}. Retrying…` : "Offline. Messages are sent when the network is back.";
}

const errors = { stream: "", list: "", stop: "", details: "" };

// showError shows an error above the conversation; "" clears it.
function showError(source, text) {
  errors[source] = text;
  const first = Object.values(errors).find(Boolean) ?? "";
  $("banner").hidden = !first;
  $("banner").textContent = visible(first);
}

let waiting = []; // { index, what } of the calls that wait for this page

// showWaiting names or counts the waiting calls above the input box.
function showWaiting(entries) {
  waiting = entries.flatMap((entry, index) => {
    const what = waitsFor(entry);
    return what ? [{ index, what }] : [];
  });
  const what = waiting.every((call) => call.what === waiting[0].what) && waiting[0]?.what;
  const text = waiting.length === 1
    ? `${visible(entries[waiting[0].index].content.entry_type.tool_name)} waits for your ${what}`
    : `${waiting.length} calls wait for ${what ? `your ${what}` : "you"}`;
  const line = $("waiting").firstChild;
  $("waiting").hidden = waiting.length === 0;
  contexts.setWaiting(current, waiting.length > 0);
  if (waiting.length > 0 && line.textContent !== text) line.textContent = text; // a screen reader reads changes
  showStatus();
}

let shownStatus = "";

// isAnswering reports whether an answer runs, according to the stream.
function isAnswering() {
  const known = contexts.statusOf(current);
  return known === "waiting" || known === "answering" || (known !== "closed" && conversation.streaming);
}

function showStatus() {
  const status = isAnswering() ? "answering" : contexts.statusOf(current) ?? "";
  const text = isUnattended ? "waiting for a worker" : status === "answering" && waiting.length > 0 ? waitingFor() : status;
  if ($("status").textContent !== text) $("status").textContent = text;
  $("status").classList.toggle("unattended", isUnattended);
  if (status === shownStatus) return;
  if (shownStatus === "answering") contexts.refresh();
  shownStatus = status;
  actions.update(shown, isAnswering());
  $("status").className = status;
  $("status").classList.toggle("unattended", isUnattended);
  $("stop").hidden = status !== "answering";
}

const waitingFor = () => (waiting.some(({ what }) => what === "approval") ? "waiting for approval" : "waiting for an answer");

async function stop() {
  showError("stop", "");
  $("stop").disabled = true;
  try {
    await request(`contexts/${encodeURIComponent(current)}/interrupt`, { method: "POST" });
  } catch (error) {
    showError("stop", `Stop failed: ${error.message}`);
  }
  $("stop").disabled = false;
}

function begin() {
  if (!may("write")) return;
  $("search").value = "";
  location.hash = `chat-${newKey().slice(0, 8)}`;
}

function rename() {
  if (current && may("write")) $("rename").click();
}

$("new").addEventListener("click", begin);
$("begin").addEventListener("click", begin);
$("export-markdown").addEventListener("click", () => exportMarkdown(current, shown));
$("export-events").addEventListener("click", async () => {
  showError("details", "");
  await exportEvents(current).catch((error) => showError("details", `Not exported: ${error.message}`));
});
$("stop").addEventListener("click", stop);
$("waiting").lastChild.addEventListener("click", () => conversation.reveal(waiting[0].index));
$("list").addEventListener("dblclick", rename); // its first click has opened the conversation
addEventListener("hashchange", open);
addEventListener("keydown", (event) => {
  if (document.querySelector("dialog[open], :popover-open")) return;
  if (event.key === "Escape" && !$("stop").hidden && event.target !== $("search") && may("write")) stop();
  const isTyping = event.target.closest?.("input, textarea, select");
  const hasControl = event.ctrlKey || event.metaKey;
  if (event.altKey) return;
  const search = () => {
    $("search").focus();
    $("search").select();
  };
  const showKeys = () => $("keys").showModal();
  const command = (hasControl ? { k: search, "/": showKeys } : isTyping ? { F2: rename } : { F2: rename, "/": search, n: begin, "?": showKeys })[event.key];
  if (!command) return;
  event.preventDefault();
  command();
});
open();
