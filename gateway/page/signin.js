// Signing in and out, and who is signed in.

import { $ } from "./dom.js";
import { authorization, isShared } from "./link.js";
import { clear, load, store } from "./storage.js";
import { visible } from "./visible.js";

// The reasons with which the gateway leads back from the provider.
const FAILURES = {
  expired: "Signing in took too long, or began in another window. Please try again.",
  denied: "The provider did not sign you in.",
  rejected: "The provider knows you, but this gateway does not accept you. Its log says why.",
  unavailable: "The provider does not respond. Please try again later.",
};

const ROLES = ["read", "write", "approve", "admin"];

let ways = [];
let roles = ROLES;

// may reports whether the person has a role. Elements with data-role show only to those who have it.
export const may = (role) => roles.includes(role) || roles.includes("admin");

// arrive resolves when the person may use the page, to the context of a share link, if any. It forgets what another person
// left in this tab.
export async function arrive() {
  const failure = new URLSearchParams(location.search).get("sign-in");
  const place = load("place") ?? "";
  store("place");
  if (failure || place) history.replaceState(null, "", location.pathname + (location.hash || place));
  const who = await fetch("auth/session", { cache: "no-store", headers: authorization }).then((response) => response.json()).catch(() => ({}));
  ways = who.signIn ?? [];
  if (who.required && !who.subject) return signIn(FAILURES[failure]);
  if (isShared && !who.context) return signIn("The gateway cannot read this link now. Please reload the page later.");
  document.body.classList.toggle("shared", Boolean(who.context));
  const person = who.subject && visible([who.subject, who.tenant].filter(Boolean).join(" · "));
  if (!isShared) {
    if (load("person") !== person) clear();
    store("person", person);
  }
  if (who.subject) roles = who.roles ?? [];
  for (const role of ROLES) document.body.classList.toggle(`cannot-${role}`, !may(role));
  $("person").hidden = !person;
  $("person-name").textContent = person ?? "";
  $("sign-out").hidden = !who.session;
  return who.context;
}

// signIn shows how to sign in, which loads the page again. It never resolves.
export function signIn(note = "") {
  if (isShared) {
    ways = [];
    note ||= "This link has expired, or was revoked. Ask for another one.";
    $("sign-in-title").textContent = "Chronicle";
  }
  document.body.classList.add("signed-out");
  document.title = "Sign in · Chronicle";
  $("sign-in").hidden = false;
  $("provider").hidden = !ways.includes("provider");
  $("with-token").hidden = $("token").disabled = !ways.includes("token");
  showNote(note || (ways.length === 0 ? "You are not signed in. Sign in at the proxy of this gateway, and reload the page." : ""));
  const first = ways.includes("provider") ? $("provider") : $("token");
  first.focus();
  return new Promise(() => {});
}

function showNote(text) {
  $("sign-in-note").hidden = !text;
  $("sign-in-note").textContent = text;
}

$("provider").addEventListener("click", () => store("place", location.hash || undefined));

$("sign-in").addEventListener("submit", async (event) => {
  event.preventDefault();
  showNote("");
  const body = JSON.stringify({ token: $("token").value.trim() });
  const response = await fetch("auth/session", { method: "POST", headers: { "Content-Type": "application/json" }, body }).catch(() => undefined);
  if (response?.ok) location.reload();
  else if (response?.status === 401) showNote("This token is unknown, revoked or expired.");
  else showNote(`The gateway ${response ? `responds with ${response.status}` : "is unreachable"}. Please try again later.`);
});

$("sign-out").addEventListener("click", async () => {
  const response = await fetch("auth/session", { method: "DELETE" }).catch(() => undefined);
  if (!response?.ok) return;
  clear();
  location.reload();
});
