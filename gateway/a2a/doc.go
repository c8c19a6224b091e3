// Package a2a serves contexts to agents of the Agent2Agent protocol, A2A 1.0 (https://a2a-protocol.org), by its JSON-RPC
// binding, such as clients of @a2a-js/sdk.
//
//	options.Protocols = append(options.Protocols, a2a.Protocols(a2a.Options{})...)
//
// The agent card is /.well-known/agent-card.json. There is one for the gateway: contexts have settings, but no templates.
//
// # Tasks
//
// A contextId is the name of a context. A task is a turn: it begins with an event that requests an answer, whose id is that of
// the task, also if another client sent it, and ends with the request that includes the event. A message without a taskId
// begins a task; without a contextId, in a context of its own. Its messageId is the client event id: a repeated message
// returns its task. The delivery policy of the context decides what a message does to a running answer.
//
//	| event of the context                          | state or update of the task                                       |
//	|-----------------------------------------------|-------------------------------------------------------------------|
//	| UserMessageEvent, AnswerRequestedEvent        | submitted                                                         |
//	| LLMRequestStartedEvent                        | working                                                           |
//	| TextDeltaEvent, AssistantMessageEvent         | an artifact for each answer with text: answer-1, answer-2         |
//	| a failed attempt                              | its artifact has an empty text, until another attempt replaces it |
//	| ToolCallEvent, ToolResultEvent of a worker    | working, with a message that has the call or the result as data   |
//	| ToolProgressEvent                             | working, with toolProgress in the metadata of the update          |
//	| calls that wait for clients or approvals only | input-required                                                    |
//	| the end of the request                        | completed or failed                                               |
//	| an interrupt, the end of the session          | canceled; the artifact has the text so far                        |
//	| InputRejectedEvent                            | rejected                                                          |
//
// An artifact with an empty text is none. Reasoning is not shown. The message of a status becomes history with the next one.
//
// # Input
//
// The message of an input-required task has a text for people and models, and for each call a data part with toolCallId,
// name, arguments and what it wants, a decision or a result. The next message with the id of the task replies, with data parts like
// {"toolCallId":"c1","decision":"approve","arguments":{}}, {"toolCallId":"c1","decision":"deny","reason":""},
// {"toolCallId":"c1","result":7} and {"toolCallId":"c1","error":""}. If only one call waits, the toolCallId can be absent, and a
// text is the result, or the decision: approve, or deny with a reason. Other messages to a task are rejected: without the
// taskId, they begin another one.
//
// # Streams
//
// A stream begins with the task so far and continues with what follows, at any gateway: nothing is stored but the log. One that
// sent a message also ends when the task is input-required. A disconnect stops nothing.
//
// # Not supported
//
// Push notifications: URLs from clients would let them reach the network of the gateway; operators have webhooks. Data parts in
// messages that begin a task. Lists of tasks across contexts. Version 0.3.
package a2a
