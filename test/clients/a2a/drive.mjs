// Drives clients of @a2a-js/sdk. Each line of the input is a command, {"call":…,"method":…,"params":…}; each line of the output
// is what happened, {"call":…,"task":…,"error":…}. A stream is folded into a task, as an agent would.
import { createInterface } from "node:readline";
import { ListTasksRequest, SendMessageRequest, StreamResponse, Task } from "@a2a-js/sdk";
import { ClientFactory, JsonRpcTransportFactory } from "@a2a-js/sdk/client";

// Each argument is the URL of a gateway, and after a # the token of a client.
const clients = await Promise.all(
  process.argv.slice(2).map((argument) => {
    const [url, token] = argument.split("#");
    const fetchImpl = token && ((at, init) => fetch(at, { ...init, headers: { ...init.headers, Authorization: `Bearer ${token}` } }));
    return new ClientFactory({ transports: [new JsonRpcTransportFactory({ fetchImpl })] }).createFromUrl(url);
  }),
);

// fold applies an update of a stream to a task.
function fold(task, update) {
  const { payload } = update;
  switch (payload.$case) {
    case "task":
      return payload.value;
    case "statusUpdate":
      if (payload.value.metadata?.toolProgress) return task;
      if (task.status.message) task.history.push(task.status.message);
      task.status = payload.value.status;
      task.metadata = payload.value.metadata;
      return task;
    case "artifactUpdate": {
      const { artifact, append } = payload.value;
      const known = task.artifacts.find((a) => a.artifactId === artifact.artifactId);
      if (!known) task.artifacts.push(artifact);
      else if (append) known.parts.push(...artifact.parts);
      else known.parts = artifact.parts;
      return task;
    }
  }
  throw new Error(`unexpected ${payload.$case}`);
}

// joined returns the JSON of a task with one text for each artifact that has any.
function joined(task) {
  const json = Task.toJSON(task);
  json.artifacts = (json.artifacts ?? [])
    .map((a) => ({ ...a, parts: [{ text: a.parts.map((p) => p.text ?? "").join("") }] }))
    .filter((a) => a.parts[0].text);
  return json;
}

async function read(stream, { stopAt, abort }) {
  let task, first;
  const updates = [];
  for await (const update of stream) {
    updates.push(update.payload.$case);
    task = fold(task, update);
    first ??= joined(task);
    if (stopAt && JSON.stringify(StreamResponse.toJSON(update)).includes(stopAt)) {
      abort.abort();
      break;
    }
  }
  return { task: joined(task), first, updates };
}

async function run(command) {
  const { method, params } = command;
  const client = clients[command.gateway ?? 0];
  const abort = new AbortController();
  const options = { signal: abort.signal };
  switch (method) {
    case "sendMessageStream":
      return read(client.sendMessageStream(SendMessageRequest.fromJSON(params), options), { ...command, abort });
    case "resubscribeTask":
      return read(client.resubscribeTask(params, options), { ...command, abort });
    case "sendMessage":
      return { task: joined(await client.sendMessage(SendMessageRequest.fromJSON(params))) };
    case "listTasks": {
      const { tasks, ...page } = await client.listTasks(ListTasksRequest.fromJSON(params));
      return { tasks: tasks.map(joined), page };
    }
    case "getAgentCard":
      return { card: await client.getAgentCard() };
    default:
      return { task: joined(await client[method](params)) };
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line);
  run(command)
    .catch((error) => ({ error: { name: (error.cause ?? error).name, message: error.message } }))
    .then((result) => console.log(JSON.stringify({ call: command.call, ...result })));
}
