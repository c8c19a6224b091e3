// Package transcript renders a log for people. It folds the events of a context, including those of
// coding agents, into a document of entries, and describes each change as a JSON Patch (RFC 6902).
//
//	p := transcript.NewPatcher()
//	for e := range events {
//		patch := p.Apply(e)     // from the previous version to p.Version()
//	}
//	p.Document()                // for a new viewer
//	p.Since(version)            // for a viewer with an earlier version
//
// [Reduce] is pure: it turns an event into effects on entries, identified by id. [Patcher] owns the
// document, numbers its versions and maps ids to indices.
//
// # The document
//
// A document is a list of entries, each with an [EntryType]:
//
//	{"entries":[
//	  {"type":"NORMALIZED_ENTRY","content":{"timestamp":"2026-01-02T15:04:07Z",
//	   "entry_type":{"type":"tool_use","tool_name":"Read","status":"created",
//	    "action_type":{"action":"file_read","path":"a.txt"}},"content":"a.txt"}}]}
//
// Entries are in log order, except those of an answer, which follow the newest event in the model's
// input. An interrupted answer thus precedes the message that interrupted it.
//
// # Streaming
//
// JSON Patch cannot append to a string, and replacing an entry for every delta costs quadratic
// bytes. The entry of a streaming answer therefore has chunks instead of content; reasoning has an
// entry of its own before it. Each delta is one operation, and progress replaces a field:
//
//	{"op":"add","path":"/entries/7/content/chunks/-","value":" token"}
//	{"op":"add","path":"/entries/7/content/progress","value":"page 3 of 12"}
//
// The final [event.AssistantMessage] replaces each entry by one with the complete text as content,
// so that a viewer that ignores chunks still shows complete answers.
//
// Deltas can be missing, repeated or late. Repeats are ignored. A gap pauses the display until a
// delta with Reset, or the answer. A new attempt removes the text of the previous one.
//
// # Guarantees
//
//   - [Patcher.Since] patches any version to the newest one; chunks may be split differently.
//     The size of a patch is independent of the number of versions in between.
//   - While nothing streams, the document depends on the log alone, except for progress.
//   - A call is shown with its result, whichever comes first. Calls and results with the extra field
//     sessionId are matched within that agent session. Up to [MaxWaiting] results wait for their
//     calls; one more drops the oldest, with a warning.
//   - [Reduce] does not modify its arguments.
package transcript
