// Package reducer decides what a context does. It is pure: it has no clock, randomness or I/O.
// Times and ids are inputs, and actions are returned as data.
//
// [Reduce] folds the events of a context into a [ReducedContext], the messages and settings for a
// model. [Step] is the state machine of a session: it takes one [Input] and returns the new
// [Session] and the [Effect] values that the workflow performs:
//
//	s, effects := reducer.Step(s, reducer.Received{At: now, Events: in})
//	// effects: Record{…}, StartRequest{…}
//	s.Reduced.Messages // the conversation
//
// # Transitions
//
// A session is in one [Phase]. The first row that matches the phase, the input and the
// conditions gives the next phase and the effects. "running" stands for all phases with a
// request, an effect in brackets is optional, CallTool may occur several times, and - means none.
//
//	phase                    | input                      | when                        | next         | effects
//	any                      | Opened                     | -                           | idle         | Record
//	any                      | Received                   | duplicate                   | same         | -
//	calling                  | Received                   | message, policy interrupts  | debouncing   | Record, StartRequest, [CancelTools], [WakeAt]
//	calling                  | Received, Woken            | calls done                  | debouncing   | Record, StartRequest, [WakeAt]
//	calling                  | Received                   | -                           | same         | Record, [CallTool], [WakeAt]
//	calling                  | Refused                    | -                           | same         | Record
//	calling                  | ToolEnded                  | call runs, calls done       | debouncing   | Record, StartRequest
//	calling                  | ToolEnded                  | call runs                   | same         | Record, [CallTool]
//	calling                  | ToolEnded                  | check ends, calls done      | debouncing   | Record, StartRequest
//	calling                  | ToolEnded                  | check ends                  | same         | [Record], [CallTool], [WakeAt]
//	any                      | ToolEnded                  | late result                 | same         | Record
//	any                      | ToolEnded                  | -                           | same         | -
//	calling                  | Woken                      | -                           | same         | [Record], [CallTool], [WakeAt]
//	any                      | Woken                      | -                           | same         | -
//	calling                  | Continued                  | calls done                  | debouncing   | Record, StartRequest
//	calling                  | Continued                  | -                           | same         | [Record], [CallTool], [WakeAt]
//	calling                  | InterruptAsked             | message waits               | debouncing   | Record, StartRequest, [CancelTools], [WakeAt]
//	calling                  | InterruptAsked             | -                           | idle         | Record, [CancelTools], [WakeAt]
//	calling                  | CloseAsked                 | -                           | ended        | Record, [CancelTools], [WakeAt]
//	calling                  | RequestStarted             | -                           | same         | -
//	calling                  | RequestEnded               | -                           | same         | -
//	idle, ended              | Received                   | message                     | debouncing   | Record, StartRequest
//	ended                    | Received, Refused          | -                           | idle         | Record
//	debouncing, answering    | Received                   | message, summarising        | same         | Record
//	debouncing               | Received                   | message, policy interrupts  | same         | Record, TellRequest
//	answering                | Received                   | message, policy interrupts  | interrupting | Record, InterruptRequest
//	any                      | Received, Refused          | -                           | same         | Record
//	running                  | RequestStarted             | newest attempt ended        | same         | Record
//	any                      | RequestStarted             | implausible                 | same         | -
//	withdrawing, cancelling  | RequestStarted             | -                           | cancelling   | Record, InterruptRequest
//	interrupting             | RequestStarted             | outdated                    | same         | Record, InterruptRequest
//	debouncing, answering    | RequestStarted             | summarising                 | answering    | Record
//	debouncing, answering    | RequestStarted             | outdated, policy interrupts | interrupting | Record, InterruptRequest
//	running                  | RequestStarted             | -                           | answering    | Record
//	debouncing               | InterruptAsked, CloseAsked | -                           | withdrawing  | InterruptRequest
//	answering, interrupting  | InterruptAsked, CloseAsked | -                           | cancelling   | InterruptRequest
//	idle                     | CloseAsked                 | -                           | ended        | Record
//	any                      | InterruptAsked, CloseAsked | -                           | same         | -
//	answering                | Continued                  | worker known                | same         | AdoptRequest
//	interrupting, cancelling | Continued                  | worker known                | same         | AdoptRequest, InterruptRequest
//	debouncing, answering    | RequestEnded               | content refused             | debouncing   | Record, StartRequest
//	debouncing, answering    | RequestEnded               | too long                    | debouncing   | [Record], StartRequest
//	debouncing, answering    | RequestEnded               | summary complete            | debouncing   | Record, StartRequest
//	debouncing, answering    | RequestEnded               | summary fails               | debouncing   | [Record], StartRequest
//	debouncing, answering    | RequestEnded               | called, calls done          | debouncing   | Record, StartRequest
//	debouncing, answering    | RequestEnded               | called                      | calling      | Record, [CallTool], [WakeAt]
//	debouncing, answering    | RequestEnded               | failed, may fall back       | debouncing   | Record, StartRequest
//	debouncing, answering    | RequestEnded, Continued    | handed back                 | debouncing   | [Record], StartRequest
//	running                  | RequestEnded, Continued    | message waits               | debouncing   | Record, StartRequest
//	running                  | RequestEnded, Continued    | closing                     | ended        | Record
//	running                  | RequestEnded, Continued    | -                           | idle         | Record
//	any                      | RequestEnded, Continued    | -                           | same         | -
//
// The conditions are:
//   - message: the input contains a message that requires an answer, and is not rejected.
//   - outdated: the reported attempt does not include the newest such message.
//   - message waits: the request ends without having included or answered such a message.
//   - called: the answer has tool calls, the turn has a step left, and neither a stop nor, under the
//     policy interrupt, new input arrived before the answer.
//   - calls done: after the input, every call has a result.
//   - call runs: the call is running, not waiting for an approval or a client.
//   - check ends: the check of a call's edited arguments has ended. An error or a lost check is the result
//     of the call; else the call continues.
//   - late result: the result of a call that was interrupted or lost, and has a placeholder.
//   - newest attempt ended: the newest attempt failed and is retried; the log lacks its end.
//   - summarising: the attempts of the request write a summary instead of an answer.
//   - summary complete: the result of such an attempt has a text.
//   - summary fails: its error is not retryable, or it timed out. If the provider has rejected the
//     request as too long, another strategy must also be able to shorten the conversation.
//   - content refused, at most [MaxRefusals] times since the last step or fallback: the provider refused the attempt,
//     and content that may be why has not been replaced yet ([event.ContentRefused]).
//   - failed, may fall back: a fallback is configured and not yet in use, and neither a hook nor a budget
//     caused the failure.
//   - too long, at most [MaxCompactions] times since the last step or fallback: the attempt was not sent
//     because it is too long, or the provider rejected it as too long and the messages can be shortened.
//   - implausible: the report is about another request, or repeated, or forged.
//   - worker known: the process that makes the newest attempt was reported.
//   - handed back, at most [MaxReturns] times without a step or a summary in between: the worker shut
//     down or died, an attempt was stopped for new input that it already included, the worker is unknown
//     when continuing as new, or the attempt included input that is not in the log.
//   - closing: the session is closed when the request ends.
//
// # Guarantees
//
//   - Every tool call has exactly one result before the next attempt. A call is executed at most once
//     unless it is idempotent or the workflow is reset. A late result replaces the placeholder of an interruption.
//   - [Reduce] and [Step] are deterministic. Results can share memory with arguments: modify neither.
//   - Reduce(Reduce(s, a...), b...) equals Reduce(s, a..., b...) for every split of a log, and a
//     state survives a JSON round trip unchanged.
//   - Folding a log takes linear time in one call, or event by event while messages are appended.
//     Folding one event that modifies earlier messages copies all messages: 0.1 ms per thousand messages.
package reducer
