// Package event is the vocabulary of a context: every type of event, its JSON
// and its validation.
//
// An [Event] is an envelope (id, time, context, parent) and a [Body]. The body
// is one of the struct types of this package; its [Tag] is the "_tag" of the
// JSON:
//
//	in, err := event.DecodeInput([]byte(`{"_tag":"UserMessage","content":"Hello"}`))
//	// in[0].Tag() == event.TagUserMessage
//	// in[0].Body  == event.UserMessage{Content: "Hello"}
//
// What the package guarantees:
//   - JSON that was read is valid: an unknown tag, a missing or wrongly typed
//     field and an absurd value are a [*FieldError] that names the field.
//   - Fields of an event that this version does not know survive a round trip,
//     and the same event always gives the same bytes. A JSON value that is kept
//     as it is, like the parameters of a tool call, is kept in one form: no
//     spaces, names in order.
//   - No raw key is taken: a field named like an API key is refused at any
//     depth, and no error repeats a value that may be one.
//
// It imports the standard library only.
package event
