// Package reducer decides what a context does. It contains the pure core of Chronicle: no
// clock, no randomness, no I/O and no Temporal. Times and ids are inputs, and actions are
// returned as data.
//
// [Reduce] folds the events of a context into a [ReducedContext], the messages and settings
// for a model:
//
//	r := reducer.Reduce(reducer.Initial(), events...)
//	r.Messages // the conversation
//	r.Config   // provider, retries, timeouts
//
// [Step] is the state machine of a session. It takes one [Input], such as received events
// or the result of a request, and returns the new [Session] and the [Effect] values that
// the workflow performs:
//
//	s, effects := reducer.Step(s, reducer.Received{At: now, Events: in})
//	// effects: Record{…}, StartRequest{…}
//
// # Transitions
//
// A session is in one [Phase]. The first row that matches the phase, the input and the
// conditions gives the next phase and the effects. "running" stands for all phases with a
// request, an effect in brackets is optional, [CallTool] also stands for several, and - means none.
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
//	debouncing               | Received                   | message, policy interrupts  | same         | Record, TellRequest
//	answering                | Received                   | message, policy interrupts  | interrupting | Record, InterruptRequest
//	any                      | Received, Refused          | -                           | same         | Record
//	running                  | RequestStarted             | newest attempt ended        | same         | Record
//	any                      | RequestStarted             | implausible                 | same         | -
//	withdrawing, cancelling  | RequestStarted             | -                           | cancelling   | Record, InterruptRequest
//	interrupting             | RequestStarted             | outdated                    | same         | Record, InterruptRequest
//	debouncing, answering    | RequestStarted             | outdated, policy interrupts | interrupting | Record, InterruptRequest
//	running                  | RequestStarted             | -                           | answering    | Record
//	debouncing               | InterruptAsked, CloseAsked | -                           | withdrawing  | InterruptRequest
//	answering, interrupting  | InterruptAsked, CloseAsked | -                           | cancelling   | InterruptRequest
//	idle                     | CloseAsked                 | -                           | ended        | Record
//	any                      | InterruptAsked, CloseAsked | -                           | same         | -
//	answering                | Continued                  | worker known                | same         | AdoptRequest
//	interrupting, cancelling | Continued                  | worker known                | same         | AdoptRequest, InterruptRequest
//	debouncing, answering    | RequestEnded               | called, calls done          | debouncing   | Record, StartRequest
//	debouncing, answering    | RequestEnded               | called                      | calling      | Record, [CallTool], [WakeAt]
//	debouncing, answering    | RequestEnded               | failed, fallback configured | debouncing   | Record, StartRequest
//	debouncing, answering    | RequestEnded, Continued    | handed back                 | debouncing   | [Record], StartRequest
//	running                  | RequestEnded, Continued    | message waits               | debouncing   | Record, StartRequest
//	running                  | RequestEnded, Continued    | closing                     | ended        | Record
//	running                  | RequestEnded, Continued    | -                           | idle         | Record
//	any                      | RequestEnded, Continued    | -                           | same         | -
//
// The conditions are:
//   - message: the input contains a message that wants an answer, and is not rejected.
//   - outdated: the reported attempt does not include the newest such message.
//   - message waits: the request ends without having included or answered such a message.
//   - called: the answer has tool calls, the turn has a step left, and no stop or, under the
//     policy interrupt, new input arrived before the answer.
//   - calls done: after the input, every call has a result.
//   - call runs: the call is running; calls that wait for an approval or a client are not.
//   - late result: the result of a call that was interrupted or lost, and has a placeholder.
//   - policy interrupts: the delivery policy is interrupt.
//   - newest attempt ended: the newest known attempt failed and is retried, and the log does
//     not yet contain its end.
//   - implausible: the report is about another request, or repeated, or forged.
//   - worker known: the process that makes the newest attempt was reported.
//   - handed back: the worker shut down or died, or a stop arrived that became obsolete, and
//     the request was handed back at most [MaxReturns] times. Continuing as new without a
//     known worker counts as handed back, and so does a result for input that is not in the
//     log.
//   - closing: the session is closed when the request ends.
//
// # Guarantees
//
//   - Every tool call has exactly one result before the next attempt. A call is executed at most
//     once unless it is idempotent. An actual result that arrives after an interruption replaces
//     the placeholder.
//   - Both folds are deterministic and never modify their arguments. Results can share
//     memory with arguments, so treat both as immutable.
//   - Reduce(Reduce(s, a...), b...) equals Reduce(s, a..., b...) for every split of a log,
//     and a state survives a JSON round trip unchanged.
//   - Folding a log takes linear time, in one call and, while messages are appended, event
//     by event. An event that modifies earlier messages, such as a tool call or a late
//     answer, copies the list of messages if it is folded alone, which takes 0.1 ms for a
//     thousand messages.
package reducer
