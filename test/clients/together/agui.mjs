// Drives an agent of @ag-ui/client. Each line of the input is a run, {"say":…}, which is repeated until it ends; each line of the
// output is all that the agent has, {"messages":[…],"waits":…,"runs":n}. Calls that wait when a run begins are approved.
import { createInterface } from "node:readline";
import { HttpAgent } from "@ag-ui/client";

const [url, threadId] = process.argv.slice(2);
const agent = new HttpAgent({ url: `${url}/ag-ui/run`, threadId });
let runs = 0, error;
const print = () => console.log(JSON.stringify({
  messages: agent.messages, waits: agent.pendingInterrupts.length > 0, runs, error,
}));

async function run({ say }) {
  if (say) agent.addMessage({ id: crypto.randomUUID(), role: "user", content: say });
  for (let isEnded = false; !isEnded; ) {
    const resume = agent.pendingInterrupts.map(({ id }) => ({ interruptId: id, status: "resolved", payload: { approved: true } }));
    try {
      await agent.runAgent(resume.length > 0 ? { resume } : {}, { onRunFinishedEvent() { isEnded = true; } });
    } catch (e) {
      error = e.message;
      print();
    }
    if (!isEnded) await new Promise((resolve) => setTimeout(resolve, 100)); // the gateway restarts
  }
  runs++;
  print();
}

// The package also leaves the error of a broken stream unhandled.
process.on("unhandledRejection", (e) => void (error = e.message));
agent.subscribe({ onMessagesChanged: print });
for await (const line of createInterface({ input: process.stdin })) run(JSON.parse(line));
