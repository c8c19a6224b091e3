// Package agentlog reads what coding agents print about their work, one JSON
// object per line, as the events of a context.
//
//	for e, err := range agentlog.Read(os.Stdin, agentlog.Droid) {
//		// UserMessage, AssistantMessage, ToolCall, ToolResult, Note
//	}
//
// A line goes through the package like this: it is made fit (read.go), a format
// says what it means (droid.go, claude.go), results find their calls
// (pairing.go), and what is too long for an event is cut (fit.go). A format is
// one file: a [Format], and a parser of its lines.
//
// What the package guarantees:
//   - Every line is heard of but for those that only repeat another, and none ends
//     the reading: one that means nothing is a note of kind warning with the line in
//     it, its first 64 KiB. Text around the objects is a note of kind system,
//     without its colours.
//   - A line is told when it is read. Only results wait, for a call that they
//     came before; those that wait too long are a warning with the result in it.
//   - Any context takes the events, in this order: no user message asks for an
//     answer, each result follows its call, none is longer than [MaxEventBytes],
//     and none holds a raw key, see [event.RedactJSON].
//   - When the log ends, every call has a result, if need be "interrupted, outcome
//     unknown". The true one takes its place when the log has gone on and is read
//     again.
//   - The same log gives the same ClientEventIDs, and a longer one those and
//     more. So a log may be sent to a context again, see session.Context.Send. Lines
//     are told apart by the session of the agent, by what they say, and by how
//     often they said it before.
//   - A log of any length takes bounded memory.
//
// Beside its own fields an event has sourceTimestamp, when the agent says when it
// happened, and of its other fields those that viewers want: a note on the
// beginning has cwd, model and tools; a message has the messageId that calls refer
// to.
package agentlog
