// Package exchange writes logs for other programs and for people, and reads what
// they write.
//
// [Write] takes a log as [JSONL], which is exact, as [OpenAI] messages or as
// [Markdown]. [Read] takes events and messages, tells them apart by what is in
// them, and gives them their place in a log of the name it is told:
//
//	err := exchange.Write(file, exchange.JSONL, log)
//	…
//	for e, err := range exchange.Read(file, "copy", time.Now()) {
//		// copy:0001, copy:0002, …
//	}
//
// What may be read:
//   - Our own JSON lines. Under the name that they have they are the log again,
//     byte for byte, the events of the lifecycle included; under another name they
//     are the log of [event.Event.MovedTo].
//   - JSON lines of others with the same tags and less of an envelope, or with
//     events left out. What is missing is assigned, what nobody knows is kept, and
//     ids that others refer to are followed to where they end up (place.go).
//     Deltas are left out.
//   - A conversation as the Chat Completions API takes it, {"messages":[…]} or the
//     array alone (openai_read.go). It has no times, so all events have that of the
//     import.
//
// What comes of it is valid and dense: ids count from 1 and each event follows the
// one before. Anything else is one error that names the line and the field. No raw
// key is taken, see [event.RefuseKeys], and none is repeated in an error.
//
// Lines are read and written one at a time and never held together. A conversation
// is held as a whole, and so is a log of which the messages are written, since an
// answer may stand before what came earlier.
//
// # OpenAI messages
//
// They are written as {"messages":[…]} on one line: the body of a request but for
// the model, and an example for fine-tuning, a file of which is such lines one after
// the other. They are what the API takes, so every tool call has its result, if need
// be "interrupted, outcome unknown", and a result of no call is told by the user.
//
// Reading and writing them again gives the same messages, but for this:
//   - System and developer messages become one system message in front, the texts
//     joined by blank lines; so do the texts of a message, in front of what is not
//     text.
//   - Arguments of tool calls are the same JSON in another form, without spaces and
//     with names in order; none are "{}", and what is not JSON is a JSON string.
//     Results stand right behind their calls.
//   - A refusal becomes the content. A file of text becomes text. Data URLs have no
//     parameters, and a file without a name is called document.pdf.
//   - What a log cannot hold is dropped: names of speakers, the detail of images,
//     logprobs and the like.
//
// Attachments whose bytes are elsewhere, but for images by URL, are a note in the
// text.
package exchange
