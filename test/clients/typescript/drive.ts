// Uses a gateway with the types of its description. The argument is the URL; POST /test/work starts a worker, and POST /test/cut
// closes all connections. The output is the ids of the events that each context streamed.
import assert from "node:assert/strict";
import { EventSource } from "eventsource";
import createClient from "openapi-fetch";
import type { components, paths } from "./chronicle.js";

type Schemas = components["schemas"];
type Streamed = Schemas["Event"] | Schemas["TextDelta"] | Schemas["ReasoningDelta"] | Schemas["ToolProgress"];

const url = process.argv[2];
const { GET, POST, DELETE } = createClient<paths>({ baseUrl: url });

async function send(name: string, body: Schemas["Input"] | Schemas["Input"][]): Promise<string> {
  const { data, error } = await POST("/contexts/{name}/events", { params: { path: { name } }, body });
  if (error) throw new Error(error.detail);
  return (data.eventIds ?? data.clientEventIds).at(-1)!;
}

async function turnOf(name: string, id: string, wait?: string): Promise<Schemas["Turn"]> {
  const { data, error } = await GET("/contexts/{name}/turns/{id}", { params: { path: { name, id }, query: { wait } } });
  if (error) throw new Error(`${error.status} ${error.type}`);
  return data;
}

// What the compiler must find.
// @ts-expect-error a message has a content
const noContent: Schemas["Input"] = { _tag: "UserMessageEvent", text: "Hello" };
// @ts-expect-error an unknown event
const unknownEvent: Schemas["Input"] = { _tag: "UserMessagesEvent", content: "Hello" };
// @ts-expect-error a policy is one of four
const unknownPolicy: Schemas["Input"] = { _tag: "SetDeliveryPolicyEvent", policy: "drop" };
// @ts-expect-error an event of the session is not sent by clients
const notInput: Schemas["Input"] = { _tag: "SessionEndedEvent", reason: "x" };
void [noContent, unknownEvent, unknownPolicy, notInput];

// A Follower streams contexts with nothing but EventSource, which resumes by itself.
class Follower {
  readonly seen: Record<string, string[]> = {};
  texts: Record<string, string> = {};
  opened = 0;
  #waiting: { matches: (e: Streamed) => boolean; found: (e: Streamed) => void }[] = [];
  #source: EventSource;

  constructor(...contexts: string[]) {
    this.#source = new EventSource(`${url}/events?${contexts.map((name) => `context=${name}`).join("&")}`);
    this.#source.onopen = () => void this.opened++;
    this.#source.onmessage = ({ data }) => this.#add(JSON.parse(data) as Streamed);
  }

  #add(e: Streamed) {
    switch (e._tag) {
      case "TextDeltaEvent":
        this.texts[e.requestId] = (e.reset ? "" : (this.texts[e.requestId] ?? "")) + e.delta;
        break;
      case "ReasoningDeltaEvent":
      case "ToolProgressEvent":
        break;
      default:
        (this.seen[e.contextName] ??= []).push(e.id);
    }
    this.#waiting = this.#waiting.filter(({ matches, found }) => !matches(e) || found(e));
  }

  next<T extends Streamed["_tag"]>(tag: T): Promise<Extract<Streamed, { _tag: T }>> {
    return new Promise((found) => this.#waiting.push({ matches: (e) => e._tag === tag, found: (e) => found(e as Extract<Streamed, { _tag: T }>) }));
  }

  close() {
    this.#source.close();
  }
}

const list = async () => (await GET("/contexts", { params: { query: { limit: 10 } } })).data!.contexts.map((c) => c.contextName);
assert.deepEqual(await list(), []);

// Without a worker, the message is stored.
const stored = await send("early", { _tag: "UserMessageEvent", content: "Hello" });
assert.equal((await turnOf("early", stored)).status, "queued");
await fetch(`${url}/test/work`, { method: "POST" });
const early = await turnOf("early", stored, "1m");
assert.deepEqual([early.status, early.answer], ["completed", "You said Hello"]);
assert.equal(early.usage.inputTokens, 10);

const follower = new Follower("a", "b");
const asked = follower.next("ApprovalRequestedEvent");
const message = await send("a", [
  { _tag: "SetToolsEvent", tools: ["look_up"], approve: ["look_up"] },
  { _tag: "UserMessageEvent", content: "look" },
]);
assert.equal((await turnOf("a", message, "1m")).status, "waiting");
const { toolCallId } = await asked;

await fetch(`${url}/test/cut`, { method: "POST" }).catch(() => {});
const ended = follower.next("LLMRequestCompletedEvent");
await send("a", { _tag: "ApprovalDecidedEvent", toolCallId, decision: "approve" });
const answered = await turnOf("a", message, "1m");
assert.deepEqual([answered.status, answered.answer], ["completed", "It is a small cat"]);
assert.equal((await ended).contextName, "a");
assert.equal(follower.opened, 2, "the cut closed the stream");

const other = follower.next("LLMRequestCompletedEvent");
const greeting = await send("b", { _tag: "UserMessageEvent", content: "Hi" });
const { requestId } = await other;
assert.equal(follower.texts[requestId], "You said Hi");
assert.equal((await turnOf("b", greeting)).cursor, follower.seen.b!.at(-1));

const missing = await GET("/contexts/{name}/turns/{id}", { params: { path: { name: "b", id: "b:9999" } } });
assert.equal(missing.error?.type, "urn:chronicle:problem:not-found");

while ((await list()).length < 3); // the list follows the logs
const closed = follower.next("SessionEndedEvent");
assert.equal((await DELETE("/contexts/{name}", { params: { path: { name: "a" }, query: { reason: "done" } } })).response.status, 202);
assert.equal((await closed).reason, "done");
follower.close();
for (const [name, seen] of Object.entries(follower.seen)) {
  const { data } = await GET("/contexts/{name}/events", { params: { path: { name } } });
  assert(typeof data === "object"); // and no stream, which was not asked for
  assert.deepEqual(seen, data.events.map((e) => e.id), "nothing is missing, nothing twice");
}
console.log(JSON.stringify(follower.seen));
