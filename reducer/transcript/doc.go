// Package transcript renders a log for people. It folds the events of a context,
// including those of coding agents, into a document of entries, and describes the
// change that each event makes as a JSON Patch (RFC 6902).
//
// Data flow:
//
//	event -> Reduce -> effects -> Patcher -> patch
//
// [Reduce] is pure. It decides what is visible and returns an [Effect] per entry; it
// refers to entries by id, never by index. [Patcher] keeps the document, numbers its
// versions and maps ids to indices.
//
//	p := transcript.NewPatcher()
//	for e := range events {
//		patch := p.Apply(e)     // from the previous version to p.Version()
//	}
//	p.Document()                // for a new viewer
//	p.Since(version)            // for a viewer with an earlier version
//
// # The document
//
// A document is a list of entries, each with an [EntryType]:
//
//	{"entries":[
//	  {"type":"NORMALIZED_ENTRY","content":{"timestamp":"2026-01-02T15:04:05Z",
//	   "entry_type":{"type":"user_message"},"content":"What is in a.txt?"}},
//	  {"type":"NORMALIZED_ENTRY","content":{"timestamp":"2026-01-02T15:04:07Z",
//	   "entry_type":{"type":"tool_use","tool_name":"Read","status":"created",
//	    "action_type":{"action":"file_read","path":"a.txt"}},"content":"a.txt"}}]}
//
// Entries are in log order, except those of an answer, which follow the newest event
// that the model had seen. So an interrupted answer precedes the message that
// interrupted it, as it does in the model's input. tools.go maps the tools of each
// agent to actions.
//
// # Streaming
//
// JSON Patch cannot append to a string, and replacing the entry for every delta would
// cost quadratic bytes. Therefore the entry of a streaming answer has an empty content
// and an array of chunks, and each delta is one operation:
//
//	{"op":"add","path":"/entries/7/content/chunks/-","value":" token"}
//
// The final [event.AssistantMessage] is authoritative: it replaces the entry with one
// that has the whole text as content and no chunks. The text is thus sent exactly
// twice, and a viewer that ignores chunks still shows the complete answer. The
// displayed text is the content followed by the chunks ([Entry.Text]).
//
// Deltas can be missing, repeated or late. Repeats are ignored. After a gap nothing
// more is shown until a delta with Reset, or the answer. A new attempt removes the
// text of the previous one.
//
// # Guarantees
//
//   - [Patcher.Since] patches the document of any version to the newest one. Only the
//     boundaries between chunks can differ, and no patch depends on them.
//   - The patch changes each entry at most once. Its size depends on the difference,
//     not on the number of versions in between.
//   - A repeated event changes nothing.
//   - While nothing streams, the document depends only on the log, not on the deltas
//     received.
//   - A call is shown with its result, whichever comes first. Up to [MaxWaiting]
//     results wait for their calls; beyond that the oldest is dropped with a warning.
//   - [Reduce] does not modify its arguments.
package transcript
