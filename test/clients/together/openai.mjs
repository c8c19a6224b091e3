// Drives npm openai. Each line of the input is a response to follow, {"create":{…}} or {"id":…}; each line of the output is all
// that the client has seen, {"responses":[…],"resumed":n}, with the items of a conversation after {"items":NAME}.
import { createInterface } from "node:readline";
import OpenAI from "openai";

const client = new OpenAI({ baseURL: `${process.argv[2]}/v1`, apiKey: "none", maxRetries: 10 });
const seen = { responses: [], resumed: 0 };
const print = () => console.log(JSON.stringify(seen));

async function follow({ create, id }) {
  const response = { id, texts: {}, last: null };
  seen.responses.push(response);
  let after = -1;
  const take = (event) => {
    if (event.type === "error") throw new Error(event.message);
    if (event.sequence_number <= after) throw new Error(`event ${event.sequence_number} follows ${after}`);
    after = event.sequence_number;
    response.id ??= event.response?.id;
    if (event.type === "response.output_text.delta") response.texts[event.item_id] = (response.texts[event.item_id] ?? "") + event.delta;
    if (["response.completed", "response.incomplete", "response.failed"].includes(event.type)) response.last = event.response;
    print();
  };
  const open = () => {
    if (!response.id) return client.responses.create({ model: "default", stream: true, background: true, ...create });
    return client.responses.retrieve(response.id, { stream: true, ...(after >= 0 && { starting_after: after }) });
  };
  while (!response.last) {
    try {
      for await (const event of await open()) take(event);
    } catch (error) {
      seen.error = error.message;
    }
    if (!response.last) seen.resumed++;
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line);
  if (command.items) {
    seen.items = (await client.conversations.items.list(command.items, { order: "asc", limit: 100 })).data;
    print();
  } else {
    follow(command);
  }
}
