// Server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html) over fetch.
// EventSource neither reports the response status nor detects a silent connection.

import { request } from "./request.js";

// SILENCE is the timeout in ms without data. The gateway sends a keepalive every 15 s.
const SILENCE = 40_000;

// events yields { id, type, data } until the stream ends. The first event has type "open"; a
// retry delay has type "retry". It throws the errors of request, and an error when the stream
// breaks or is silent.
export async function* events(url, { headers, signal, silence = SILENCE } = {}) {
  const timeout = new AbortController();
  let timer;
  const resetTimer = () => {
    clearTimeout(timer);
    timer = setTimeout(() => timeout.abort(new Error(`no data for ${silence / 1000} s`)), silence);
  };
  resetTimer();
  const aborted = AbortSignal.any([timeout.signal, ...(signal ? [signal] : [])]);
  try {
    const response = await request(url, { headers: { Accept: "text/event-stream", ...headers }, signal: aborted });
    yield { type: "open" };
    const parse = parser();
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { done, value } = await reader.read().catch((error) => {
        throw aborted.aborted ? error : new Error("the connection was lost");
      });
      if (done) return;
      resetTimer();
      yield* parse(value);
    }
  } finally {
    clearTimeout(timer);
    timeout.abort();
  }
}

// parser returns a function that takes the next chunk of a stream and returns complete events.
export function parser() {
  let rest = [];
  let event = { id: undefined, type: "message", data: [] };
  const complete = [];
  const line = (text) => {
    if (text === "") {
      if (event.data.length) complete.push({ ...event, data: event.data.join("\n") });
      event = { id: event.id, type: "message", data: [] };
      return;
    }
    const colon = text.indexOf(":");
    if (colon === 0) return; // a comment
    const name = colon < 0 ? text : text.slice(0, colon);
    const value = colon < 0 ? "" : text.slice(colon + (text[colon + 1] === " " ? 2 : 1));
    if (name === "data") event.data.push(value);
    else if (name === "event") event.type = value;
    else if (name === "id") event.id = value;
    else if (name === "retry") complete.push({ type: "retry", data: value });
  };
  return (chunk) => {
    // A large document is one line in many chunks, which are joined once.
    const lines = chunk.split("\n");
    for (let i = 0; i < lines.length - 1; i++) {
      rest.push(lines[i]);
      const whole = rest.join("");
      rest = [];
      line(whole.endsWith("\r") ? whole.slice(0, -1) : whole);
    }
    if (lines.at(-1)) rest.push(lines.at(-1));
    return complete.splice(0);
  };
}
