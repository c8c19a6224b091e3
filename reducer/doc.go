// Package reducer decides what a context does. It is pure: it has no clock, randomness or I/O.
// Times and ids are inputs, and actions are returned as data.
//
// [Reduce] folds the events of a context into a [ReducedContext], the messages and settings for a
// model. [Step] is the state machine of a session: it takes one [Input] and returns the new
// [Session] and the [Effect] values that the workflow performs:
//
//	s, effects := reducer.Step(s, reducer.Received{At: now, Events: in})
//	// effects: Record{…}, StartAttempt{…}
//	s.Reduced.Messages // the conversation
//
// # Attempts
//
// A request is answered by attempts, one at a time. An attempt is decided and recorded as an
// [event.LLMRequestStarted] when it is scheduled, before its quiet period, and its input is fixed. New input in the quiet period
// withdraws it, and the next attempt includes that input. What follows an attempt is decided from its [Outcome].
//
// # Transitions
//
// A session is in one [Phase]. The first row that matches the phase, the input and the
// conditions gives the next phase and the effects. An effect in brackets is optional, CallTool may occur
// several times, - means none, and [WakeAt] may follow every row.
//
//	phase             | input                      | when                        | next     | effects
//	any               | Opened                     | -                           | idle     | Record
//	any               | Received                   | duplicate                   | same     | -
//	idle, ended       | Received                   | message                     | running  | Record, StartAttempt
//	ended             | Received, Malformed        | -                           | idle     | Record
//	calling           | Received                   | message, policy interrupts  | running  | Record, StartAttempt, [CancelTools]
//	running           | Received                   | message, policy interrupts, retry waits | same | Record, StartAttempt
//	running           | Received                   | message, policy interrupts  | stopping | Record, StopAttempt
//	running           | Received                   | message, attempt waits      | same     | Record, [StopAttempt]
//	calling           | Received, ToolEnded, Woken, Continued | calls done       | running  | Record, StartAttempt
//	calling           | ToolEnded, Woken, Continued | -                          | same     | [Record], [CallTool]
//	any               | Received, Malformed        | -                           | same     | Record, [CallTool]
//	any               | ToolEnded                  | -                           | same     | [Record]
//	running           | Woken                      | retry due                   | same     | Record, StartAttempt
//	idle              | Woken                      | idle for long               | ended    | Record
//	any               | Woken                      | -                           | same     | -
//	calling, running  | InterruptAsked             | no attempt, message queued  | running  | Record, StartAttempt, [CancelTools]
//	calling, running  | InterruptAsked             | no attempt                  | idle     | Record, [CancelTools]
//	any               | CloseAsked                 | active                      | same     | -
//	calling, running  | CloseAsked                 | no attempt                  | ended    | Record, [CancelTools]
//	running           | InterruptAsked, CloseAsked | -                           | stopping | StopAttempt
//	idle              | CloseAsked                 | -                           | ended    | Record
//	any               | InterruptAsked, CloseAsked | -                           | same     | -
//	any               | AttemptEnded, Continued    | no attempt                  | same     | -
//	running           | AttemptEnded               | called, calls done          | running  | Record, StartAttempt
//	running           | AttemptEnded               | called                      | calling  | Record, [CallTool]
//	running           | AttemptEnded               | retried, retry waits        | same     | Record
//	running, stopping | AttemptEnded, Continued    | goes on                     | running  | Record, StartAttempt
//	running, stopping | AttemptEnded, Continued    | message queued              | running  | Record, StartAttempt
//	running, stopping | AttemptEnded, Continued    | closing                     | ended    | Record
//	running, stopping | AttemptEnded, Continued    | -                           | idle     | Record
//
// The conditions are:
//   - message: a message that requires an answer is not in the newest attempt, and is not rejected. In a summary, and
//     behind the limit of a queue, it waits for its turn.
//   - attempt waits: the time to send the attempt has not come. It is stopped if it is unsent, unless it already was.
//   - retry waits: the retry is due in more than 5 seconds. It is scheduled when its timer fires.
//   - retry due: a retry waits, and is due in at most 5 seconds.
//   - idle for long: the time after which idle sessions end has passed since the last event.
//   - active: the session is to end only if it is inactive, and has a request or a newer event.
//   - no attempt: no attempt is scheduled, or the report is about another one.
//   - message queued: a message arrived after the newest attempt was to be sent, and is answered next.
//   - calls done: after the input, every call has a result.
//   - called: the answer has tool calls, and the turn has a step left.
//   - retried: the failure is retryable, and the settings allow another retry.
//   - goes on: another attempt of the request follows. The attempt was withdrawn for new input; or it was not asked to stop, and
//     it failed and is retried, repaired, or may fall back; it was too long, or its summary ended ([MaxCompactions]); content was
//     refused ([MaxRefusals]); or the worker shut down or died, the run continued as new, or a stop was obsolete ([MaxReturns]).
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
