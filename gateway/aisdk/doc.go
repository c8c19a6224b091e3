// Package aisdk lets pages with the AI SDK (npm ai and @ai-sdk/react) talk to contexts: it speaks the UI message stream of
// useChat and its default transport. The id of a chat is the name of its context.
//
//	POST /api/chat                 the input; streams the answer
//	GET  /api/chat/{id}/stream     the running answer from its beginning; 204 when none runs
//	GET  /api/chat/{id}/messages   the messages, as useChat takes them
//	POST /api/chat/{id}/stop       stops the running answer
//
// These are for version 7 of ai. The same paths below /api/v6/chat are for version 6, which rejects three kinds of chunks.
// Errors are texts, which the SDK makes the message of an Error. An answer that has just ended can still be resumed, by pages
// that read the messages before.
//
// # Input
//
// One message of the body is the input: the one that messageId names, else the last, or the field message. The context has the history, so all
// other messages are ignored.
//
//	a new user message      FileAttachmentEvents and a UserMessageEvent, whose client event id is the id of the message
//	an edited one           the same, in a branch before the message
//	an answer               the results and decisions of the page, as ToolResultEvents and ApprovalDecidedEvents, for the
//	                        calls that wait for them
//	regenerate-message      another answer, in a branch before the old one; without an answer, an AnswerRequestedEvent
//
// A chat continues in its newest branch: a note in the log of the context names it, see [gateway.Handle.ContinueIn].
//
// # Chunks
//
// The events and deltas of a context fold into messages ([chat]), and the chunks of a stream are the differences between
// two states of an answer ([writer]). So a page can join at any event, and continue with what it has.
//
//	LLMRequestStarted                 start with the id of the request, start-step
//	TextDelta, ReasoningDelta         text-start, text-delta; reasoning-start, reasoning-delta
//	… with Reset, a failed attempt    reset-step; version 6: text-end, marked as discarded in providerMetadata.chronicle
//	AssistantMessage                  text-end, reasoning-end
//	ToolCall                          tool-input-start, tool-input-delta, tool-input-available
//	ToolProgress                      tool-output-available, preliminary
//	ToolResult                        tool-output-available, tool-output-error or tool-output-denied
//	ApprovalRequested                 tool-approval-request with the id of the call
//	ApprovalDecided                   tool-approval-response (version 7), tool-input-available with edited arguments
//	LLMRequestCompleted, Interrupted  finish with the usage in its metadata
//	LLMRequestFailed                  error
//
// Tools of workers are providerExecuted, so that the SDK expects results of the others only. A response ends when the
// answer ends, or when all its calls wait for the page or an approval.
package aisdk
