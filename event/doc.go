// Package event defines the events of a context, their JSON encoding and their
// validation.
//
// An [Event] is an envelope (id, time, context, parent) and a [Body]. The body is one of
// the struct types of this package; its [Tag] is the "_tag" in JSON:
//
//	in, err := event.DecodeInput([]byte(`{"_tag":"UserMessage","content":"Hello"}`))
//	// in[0].Tag() == event.TagUserMessage
//	// in[0].Body  == event.UserMessage{Content: "Hello"}
//
// Guarantees:
//   - Decoded events are valid. An unknown tag, a missing field, a wrong type or a value
//     out of range is a [*FieldError] that names the field.
//   - Unknown fields survive a round trip, and encoding is deterministic. Embedded JSON
//     values, such as the parameters of a tool call, are canonicalized: no spaces, sorted
//     names.
//   - Raw keys are rejected: no field at any depth may be named like an API key, and
//     errors never repeat a value that could be one.
//
// The package imports only the standard library.
package event
