// Reads what a page received of a message, {"version":7,"responses":[[chunk,…],…]} a line. Validates each chunk by the schema
// of the SDK, and prints the message that the SDK builds of them, {"message":…,"errors":[…],"invalid":…}.
import { createInterface } from "node:readline";
import * as sdk7 from "ai";
import * as sdk6 from "ai-6";

async function build(sdk, responses) {
  const errors = [];
  let message;
  for (const chunks of responses) {
    for (const chunk of chunks) {
      const result = await sdk.uiMessageChunkSchema().validate(chunk);
      if (!result.success) errors.push(`chunk ${JSON.stringify(chunk)}: ${result.error.message}`);
    }
    const stream = ReadableStream.from(chunks);
    const onError = (e) => errors.push(e.message);
    for await (const newest of sdk.readUIMessageStream({ message, stream, onError })) message = newest;
  }
  if (message.parts.length === 0) return { message, errors };
  const { error } = await sdk.safeValidateUIMessages({ messages: [message] });
  return { message, errors, invalid: error?.message.slice(0, 1000) };
}

for await (const line of createInterface({ input: process.stdin })) {
  const { version, responses } = JSON.parse(line);
  console.log(JSON.stringify(await build(version === 6 ? sdk6 : sdk7, responses)));
}
