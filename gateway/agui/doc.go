// Package agui serves contexts to clients of the Agent-User Interaction protocol, AG-UI 1.0 (https://docs.ag-ui.com), such
// as HttpAgent of @ag-ui/client.
//
//	options.Protocols = append(options.Protocols, agui.Protocol())
//
// # A run
//
// POST /ag-ui/run takes a RunAgentInput. Its threadId is the name of the context. The input of the run is what the
// context lacks: user messages after the newest one that it has, results of the tools of the client, and the decisions in
// `resume`. The run ends when the context has no running request, so it continues when another client sends a message.
//
// # Resuming
//
// AG-UI leaves open how a client joins a running answer. Here, its list of messages is the cursor: a run whose list has
// nothing new joins the running request. If the list lacks messages or has others, such as the beginning of the running
// answer, a MESSAGES_SNAPSHOT with all that is recorded replaces it first; the running answer follows from its beginning. A
// message keeps its id in each run. If nothing runs, the run ends at once. A client that disconnects stops nothing; POST
// /ag-ui/threads/{thread}/stop does.
//
// The first decision about an interrupt counts: a run that resumes one that another client has decided joins, too.
//
// # Messages
//
//	| event of the context               | event of AG-UI                                             |
//	|------------------------------------|------------------------------------------------------------|
//	| UserMessageEvent                   | TEXT_MESSAGE_*, unless the client sent it                  |
//	| ReasoningDeltaEvent                | REASONING_START, REASONING_MESSAGE_*, REASONING_END        |
//	| TextDeltaEvent, AssistantMessage…  | TEXT_MESSAGE_*                                             |
//	| a failed attempt                   | MESSAGES_SNAPSHOT without its text                         |
//	| ToolCallEvent                      | TOOL_CALL_START, TOOL_CALL_ARGS, TOOL_CALL_END             |
//	| ToolResultEvent                    | TOOL_CALL_RESULT                                           |
//	| ToolProgressEvent                  | ACTIVITY_SNAPSHOT of the type TOOL_PROGRESS                |
//	| the end of the request             | RUN_FINISHED with the usage, or RUN_ERROR                  |
//	| calls that wait for clients only   | RUN_FINISHED with pendingToolCallIds                       |
//	| calls that wait for approvals only | RUN_FINISHED with an interrupt for each                    |
//	| an interrupt, the end of a session | RUN_FINISHED with the outcome cancelled                    |
//	| input that requires no answer      | RUN_FINISHED after it is recorded                          |
//	| input that the context rejects     | RUN_ERROR                                                  |
package agui
