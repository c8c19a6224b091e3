// Package llm is the one way to a language model: a thin adapter over
// go-openai that streams an answer and says what went wrong when none came.
//
// A conversation of the reducer goes in, text comes out piece by piece:
//
//	adapter := llm.New(llm.Options{Defaults: llm.DefaultsFromEnv(os.Getenv)})
//	target, err := adapter.Resolve(reduced.Config.Primary) // URL, key, quirks
//	result, err := target.Stream(ctx, reduced.Messages, func(text string) {
//		fmt.Print(text)
//	})
//
// On the way the conversation is rendered for the provider (render.go,
// attachment.go), once, however many requests it takes part in (rendered.go).
// It is sent by go-openai, and read back through two thin layers of our own:
// transport.go puts the messages into the request and keeps what go-openai
// drops of a refusal, eventbody.go hands on only the lines of an event stream
// that carry data. What fails becomes an [Error] (classify.go, vision.go), a
// silence that lasts too long included (silence.go).
//
// What the package guarantees:
//   - An answer is complete or there is an error: a stream that ends without a
//     finish reason is never taken for an answer. What was said before an
//     error is in the [Result] beside it.
//   - Nothing is retried here; [Error.Retryable] and [Error.RetryAfter] say
//     whether and when the caller should.
//   - No error text holds the API key, or what looks like a secret. No error
//     wraps one that does.
//   - A key is sent to the base URL that it is configured for and to no other.
//     Requests go to configured providers and to base URLs that the operator
//     allows, see [Adapter.Resolve]. No redirect is followed.
//   - What a server sends is repeated in an error only if it is the error object
//     of a configured provider.
//   - What is sent never has a shape that a provider refuses, whatever the
//     conversation is: every tool call has its result, the system message
//     stands in front, no message is empty. The conversation itself stays as
//     it is.
//   - What is sent is the same whatever was sent before. What is kept for the
//     next request of a [Target.Conversation] is 64 MiB at most for all of them,
//     and the least recently used goes first.
//   - An attachment that cannot be read is a note to the model, and no reason not
//     to answer.
package llm
