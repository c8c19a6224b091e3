// Package agent converts the logs of coding agents, one JSON object per line, to
// events.
//
//	for e, err := range agent.Read(os.Stdin, "") {
//		// UserMessage, AssistantMessage, ToolCall, ToolResult, Note
//	}
//
// The format is recognized by the first lines (detect.go), and a log of no format is refused ([ErrUnrecognized]).
// Lines are split into JSON objects (objects.go), which are sanitized (read.go), parsed by the format (claude.go,
// codex.go, droid.go), matched with their tool calls (pairing.go) and truncated to the event size limit (fit.go). The table
// in formats.go describes the formats, and everything that lists them includes all of it.
//
// Guarantees:
//   - Every line is kept, except repeated notes about the start, repetitions of the final answer or of a uuid, empty
//     messages, streamed deltas, private keys and lines of other types. The last ones are counted in a note
//     at the end of the log, with content blocks of other types and a last line that is cut.
//   - A user message has only the text of the user. What the agent adds to it, and what subagents
//     say, become notes.
//   - No line stops the reader. A line is malformed if it cannot be parsed, if it is a result without the
//     required id, or if it is a call without a tool name. It becomes a warning note with its first 64 KiB;
//     the call is recorded as well. A line into which other lines were written is put together again. Text
//     between the objects becomes a system note, without ANSI colors.
//   - Lines are converted as they are read. Only a result that precedes its call
//     waits, in a bounded buffer. When the buffer is full, or at the end of the log,
//     such a result becomes a warning note.
//   - A result is matched to the call with the same id in the same agent session. If two
//     sessions in a log use the same id, the call of the second session gets a new id.
//   - Any context accepts the events in the order in which they are yielded: no user
//     message triggers a turn, each result follows its call, no event exceeds
//     [MaxEventBytes], and none contains a raw key ([event.RedactJSON]).
//   - At the end of the log every call has a result, [event.OutcomeUnknown]
//     if the log has none. When a longer log is read later, the actual result
//     replaces it.
//   - ClientEventIDs are deterministic: they depend on the uuid of the line or else on the agent's session, the line
//     and how often the line occurred before. A log can therefore be sent to a
//     context again after it grew, and repeats are deduplicated
//     (client.Context.Send).
//   - Memory use is bounded, whatever the length of the log.
//
// Events have extra fields for viewers, among them sourceTimestamp, the agent's own time; cwd, model and
// tools on the note about the start; messageId on messages, which calls reference; sessionId on calls and
// results; line on the warning about a malformed line; agentId or parentToolCallId on notes of subagents; skipped, see [Skipped].
package agent
