// Package transcript shows a log: it folds the events of a context, those of coding
// agents among them, into entries that people look at, and says as JSON Patch
// (RFC 6902) what each event changes.
//
// An event takes this way:
//
//	event -> Reduce -> effects -> Patcher -> patch
//
// [Reduce] is pure. It decides what is to be seen, and answers with each [Effect] on
// an entry that has an id; it knows no index. [Patcher] is the adapter: it keeps the
// document, numbers its versions and knows where each entry stands.
//
//	p := transcript.NewPatcher()
//	for e := range events {
//		patch := p.Apply(e)     // from the version before to p.Version()
//	}
//	p.Document()                // for a viewer who comes
//	p.Since(version)            // for a viewer who has an earlier version
//
// # The document
//
// A document has entries, and each an [EntryType] that says what it is:
//
//	{"entries":[
//	  {"type":"NORMALIZED_ENTRY","content":{"timestamp":"2026-01-02T15:04:05Z",
//	   "entry_type":{"type":"user_message"},"content":"What is in a.txt?"}},
//	  {"type":"NORMALIZED_ENTRY","content":{"timestamp":"2026-01-02T15:04:07Z",
//	   "entry_type":{"type":"tool_use","tool_name":"Read","status":"created",
//	    "action_type":{"action":"file_read","path":"a.txt"}},"content":"a.txt"}}]}
//
// Entries stand in the order of the log, but for those of an answer: they stand
// behind the newest event that the model had been shown, as they do for the model. So
// an answer that was interrupted stands before the message that interrupted it.
// Which tool of which agent is which action is in tools.go.
//
// # How an answer streams
//
// JSON Patch cannot add to a string, and to replace an entry for each piece of its
// text would cost the square of its length. So while an answer streams, its entry has
// an empty content and an array of chunks, and each piece of text is one operation:
//
//	{"op":"add","path":"/entries/7/content/chunks/-","value":" token"}
//
// The [event.AssistantMessage] that ends it is the truth. It replaces the entry with
// one that has the text as its content and no chunks, like any other: so the text is
// sent twice and no more, the content is a string at any time, and who knows nothing
// of chunks sees the answer when it is complete. A viewer shows content and chunks one
// behind the other, see [Entry.Text].
//
// Deltas may be missing, come twice or belong to an attempt that is over. What comes
// twice is not shown twice; behind a gap nothing is shown until a delta with Reset, or
// the answer, closes it; a new attempt takes away what the one before it said.
//
// # What is guaranteed
//
//   - The patch of [Patcher.Since] makes of any version's document the newest one.
//     Where the chunks of an answer that streams are parted may differ: no patch
//     depends on it.
//   - That patch changes each entry once. Its size depends on what differs, not on how
//     many versions lie between.
//   - An event that comes again changes nothing.
//   - When nothing streams, the document follows from the log alone, whichever deltas
//     were heard. So one that was loaded later is the same.
//   - A call is shown with its result, whichever comes first. Up to [MaxWaiting] results
//     wait for their calls; the oldest is dropped with a warning when there are more.
//   - [Reduce] changes nothing that it is given.
package transcript
