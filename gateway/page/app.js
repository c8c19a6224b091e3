// The page of the gateway: a list of contexts and the conversation of the selected
// one, which the URL fragment names, like /#demo.
//
//	contexts.js      the list
//	transcript.js    follows the transcript of a context: a document and its patches
//	conversation.js  renders it, entry by entry; entry.js and markdown.js create the elements
//	composer.js      the input box; limits.js checks attachments
//	outbox.js        sends messages
//	ask.js, sse.js, backoff.js, dom.js, kept.js, theme.js    utilities
//	lib/             libraries

import { ask } from "./ask.js";
import { $ } from "./dom.js";
import { Composer } from "./composer.js";
import { Contexts, validName } from "./contexts.js";
import { Conversation } from "./conversation.js";
import { Outbox } from "./outbox.js";
import { follow } from "./transcript.js";

const conversation = new Conversation({
  scroller: $("scroller"), list: $("entries"), toNewest: $("newest"), spoken: $("spoken"),
  shown: () => showStatus(),
});
const contexts = new Contexts({
  changed: () => showStatus(),
  connected: (yes, why) => say("list", notConnected(yes, why)), // the stream goes on in silence without Temporal
});
const outbox = new Outbox({ edit: (events) => composer.edit(events), sent: () => contexts.refresh() });
const composer = new Composer((events) => {
  outbox.add(current, events);
  conversation.toEnd();
});

// PAUSE is how long, in ms, a context may be idle between an interrupted answer and the
// next one before the Stop button is hidden, to avoid flicker.
const PAUSE = 150;

let current; // the context that is seen
let following; // aborts what follows it
let pausing; // the timer of a pause

function open() {
  const name = location.hash.slice(1); // a name has nothing that a URL would encode
  if (name === current) return;
  following?.abort();
  clearTimeout(pausing);
  following = new AbortController();
  current = validName(name) ? name : undefined;
  document.title = current ? `${current} · Chronicle` : "Chronicle";
  document.body.classList.toggle("open", Boolean(current));
  $("name").textContent = current ?? "";
  $("empty").hidden = true;
  conversation.all([]);
  say("stream", "");
  say("stop", "");
  contexts.select(current);
  composer.look(current);
  outbox.look(current);
  showStatus();
  if (!current) return;
  follow(current, viewer, following.signal);
  // On a phone the keyboard would cover the conversation.
  if (!matchMedia("(pointer: coarse)").matches) $("text").focus();
}

const viewer = {
  all(entries) {
    $("empty").hidden = entries.length > 0;
    conversation.all(entries, { keepPlace: true });
  },
  changed(entries, changes) {
    $("empty").hidden = entries.length > 0;
    conversation.changed(entries, changes);
  },
  does(doing) {
    clearTimeout(pausing);
    const tell = () => contexts.tell(current, doing);
    if (doing.status === "idle" && contexts.statusOf(current) === "answering") pausing = setTimeout(tell, PAUSE);
    else tell();
  },
  connected(yes, why) {
    clearTimeout(pausing);
    if (!yes) contexts.tell(current);
    say("stream", notConnected(yes, why));
  },
};

function notConnected(yes, why) {
  if (yes) return "";
  return navigator.onLine ? `Not connected: ${why}. Trying again…` : "Offline. Messages are sent when the network is back.";
}

const troubles = { stream: "", list: "", stop: "" };

// say shows an error above the conversation; "" clears it.
function say(what, text) {
  troubles[what] = text;
  const first = Object.values(troubles).find(Boolean) ?? "";
  $("banner").hidden = !first;
  $("banner").textContent = first;
}

let shown = "";

function showStatus() {
  const known = contexts.statusOf(current) ?? "";
  const status = known !== "closed" && conversation.streaming ? "answering" : known;
  if (status === shown) return;
  if (shown === "answering") contexts.refresh(); // which knows only later that it ended
  shown = status;
  $("status").className = status;
  $("status").textContent = status;
  $("stop").hidden = status !== "answering";
}

async function stop() {
  say("stop", "");
  $("stop").disabled = true;
  try {
    await ask(`contexts/${encodeURIComponent(current)}/interrupt`, { method: "POST" });
  } catch (error) {
    say("stop", `The answer could not be stopped: ${error.message}`);
  }
  $("stop").disabled = false;
}

$("stop").addEventListener("click", stop);
addEventListener("hashchange", open);
addEventListener("keydown", (event) => {
  const typing = event.target.closest?.("input, textarea");
  if (event.key === "Escape" && !$("stop").hidden && event.target !== $("search")) stop();
  else if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    $("search").focus();
  }
});
open();
