// Drives agents of @ag-ui/client. Each line of the input is a command, {"agent":…,"run":…}; each line of the output is what
// happened, {"events":[…],"messages":[…]}.
import { createInterface } from "node:readline";
import { HttpAgent } from "@ag-ui/client";

const url = process.argv[2];
const agents = new Map();

function agentOf({ agent, thread }) {
  if (!agents.has(agent)) agents.set(agent, new HttpAgent({ url: `${url}/ag-ui/run`, threadId: thread }));
  return agents.get(agent);
}

async function run(command) {
  const agent = agentOf(command);
  agent.addMessages(command.add ?? []);
  const events = [];
  let error, usage;
  const subscriber = {
    onEvent({ event }) {
      events.push(event.type);
      if (event.type === "RUN_FINISHED") usage = event;
      if (event.type === command.abortAt) agent.abortRun();
    },
  };
  try {
    await agent.runAgent({ tools: command.tools, context: command.context, resume: command.resume, forwardedProps: command.forwardedProps }, subscriber);
  } catch (e) {
    error = `${e.message}`;
  }
  return { events, error, finished: usage, interrupts: agent.pendingInterrupts, messages: agent.messages };
}

for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line);
  run(command).then((result) => console.log(JSON.stringify({ agent: command.agent, ...result })));
}
