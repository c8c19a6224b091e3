// A page for tests, which use window.chat. Its address is /#CHAT, or /?documented#CHAT for the program of docs/clients.md.
import { createRoot } from "react-dom/client";
import { useChat } from "@ai-sdk/react";
import {
  DefaultChatTransport,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  lastAssistantMessageIsCompleteWithToolCalls,
} from "ai";
import { Chat } from "./documented.jsx";

const id = location.hash.slice(1);
const api = import.meta.env.VITE_API; // undefined: the default of the SDK
window.calls = []; // of tools of the page
window.errors = [];

function Test({ initial }) {
  window.chat = useChat({
    id,
    messages: initial,
    resume: true,
    ...(api && { transport: new DefaultChatTransport({ api }) }),
    onToolCall: ({ toolCall }) => void window.calls.push(toolCall),
    onError: (error) => void window.errors.push(error.message),
    sendAutomaticallyWhen: (chat) =>
      lastAssistantMessageIsCompleteWithToolCalls(chat) || lastAssistantMessageIsCompleteWithApprovalResponses(chat),
  });
  return <pre>{JSON.stringify(window.chat.messages, null, 1)}</pre>;
}

const root = createRoot(document.querySelector("#root"));
if (location.search === "?documented") {
  root.render(<Chat id={id} />);
} else {
  const response = await fetch(`${api ?? "/api/chat"}/${id}/messages`);
  root.render(<Test initial={await response.json()} />);
}
