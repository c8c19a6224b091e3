// Package event defines the events of a context, their JSON encoding and their validation.
// An [Event] is an envelope and a [Body], a struct whose [Tag] is the "_tag" in JSON:
//
//	events, err := event.DecodeInput([]byte(`{"_tag":"UserMessage","content":"Hello"}`))
//	// events[0].Tag() == event.TagUserMessage
//	// events[0].Body  == event.UserMessage{Content: "Hello"}
//
// Guarantees:
//   - Decoded events are valid. An unknown tag, a missing field, a wrong type or an out-of-range
//     value is a [*FieldError] that names the field.
//   - Encoding is deterministic, and unknown top-level fields survive a round trip. Embedded
//     JSON values are canonicalized, except that an [Object] and a [ProviderState] keep the order of names.
//   - Fields named like an API key are invalid at any depth, and errors omit their values.
package event
