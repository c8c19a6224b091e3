// Package chat exports logs to other formats and imports them.
//
// [Write] exports a log as [JSONL] (lossless), [OpenAI] messages or [Markdown].
// [Read] imports events or messages, detects which of the two it is given, and
// assigns ids in the log of the named context:
//
//	left, err := chat.Write(file, chat.JSONL, log, blobs)
//	…
//	for e, err := range chat.Read(file, "copy", time.Now()) {
//		// copy:0001, copy:0002, …
//	}
//
// [Read] accepts:
//   - JSON lines written by [Write]. Read under the original name, the result, after
//     [event.Event.TakeBlob], is byte-identical to the original, lifecycle events included.
//     Under another name, events are renamed by [event.Event.MovedTo].
//   - JSON lines from other programs that use the same tags, with incomplete
//     envelopes or missing events. Missing fields are assigned, unknown fields are
//     kept, references to ids are updated (place.go), and deltas are skipped. A line
//     without an id and a time is input, see [event.DecodeInput].
//   - A Chat Completions conversation, either {"messages":[…]} or the bare array
//     (openai_read.go). It carries no times, so every event gets the import time.
//
// [Conversations] reads an export of ChatGPT (chatgpt.go). The current branch of each conversation becomes a log. Custom
// instructions become the system prompt, and messages to and from a tool become a call and its result.
//
// The result is valid and dense: ids count from 1 and each event's parent is the
// event before it. Any other input is a single error that names the line and the
// field, if it concerns one. Raw keys are rejected ([event.RejectKeys]) and never repeated in an error.
//
// Events are streamed line by line. Messages are held in memory: the input is one JSON document,
// and in the output, an answer can precede messages that the log recorded before it. [Write] reads
// the bytes of one reference, or of the references of one message, at a time.
//
// # OpenAI messages
//
// The output is {"messages":[…]} on one line: a request body without the model, or one example
// of a fine-tuning file. Reasoning becomes the field reasoning_content, which only some servers
// accept. The provider state of OpenRouter becomes reasoning_details, with the model that they
// belong to. The output satisfies the API's constraints: every tool call has a result,
// [event.OutcomeUnknown] if the log has none, and a result without a call becomes a user
// message.
//
// Reading and writing again preserves the messages, except:
//   - System and developer messages are merged into one leading system message,
//     joined by blank lines. The texts of a message are merged the same way and
//     placed before its other parts.
//   - Arguments of tool calls are re-encoded without spaces and with sorted names.
//     Missing arguments become "{}" and invalid JSON becomes a JSON string. Results
//     directly follow their calls.
//   - A refusal becomes the content. A text file becomes text. Data URLs lose their
//     parameters, and a file without a name is called document.pdf.
//   - Reasoning details without a model at the top level are dropped, and so is the provider
//     state of other providers.
//   - Fields that a log cannot represent are dropped: speaker names, image detail,
//     logprobs and the like.
//
// Attachments stored elsewhere, or whose bytes are left out, become notes in the text, one per line, except images
// by URL. Abridged tool results are written as models received them.
package chat
