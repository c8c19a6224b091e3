// Package llm sends conversations to language models in the format of OpenAI, streams answers and
// classifies errors. The types are those of go-openai.
//
//	adapter := llm.New(llm.Options{Defaults: llm.DefaultsFromEnv(os.Getenv)})
//	target, err := adapter.Resolve(reduced.Config.Primary) // URL, key, quirks
//	result, err := target.Stream(ctx, reduced.Messages, func(d llm.Delta) {
//		fmt.Print(d.Text)
//	})
//
// The conversation is rendered for the provider (render.go, pair.go, message.go, attachment.go).
// transport.go sends it with the request settings (parameters.go, format.go). The response
// is read as server-sent events (sse.go). Each is decoded leniently into a chunk (chunkreader.go, chunk.go,
// usagefields.go, json.go, halves.go), and answer.go joins the chunks, the tool calls (toolcall.go) and the provider state
// (reasoning.go), which state.go sends back in later requests. finish.go says what a finish reason means, and quirk.go
// what deviations of a server are reported. Failures become an [Error] (classify.go, refusal.go, tokentimeout.go);
// lessons.go changes a request that names a parameter.
//
// Guarantees:
//   - A stream without a finish reason and without [DONE] is an error, never an answer. The text before an error
//     is in the [Result] returned with it.
//   - The type of a field that is not used, and an event that is not JSON, never cost an answer. A response has at most
//     64 MiB.
//   - The package does not retry: see [Error.Retryable] and [Error.RetryAfter]. The one exception is
//     a parameter that a server refuses, see [Target.Stream].
//   - No [Error] contains the API key, and secrets are removed from the messages of servers. It wraps
//     only sentinel errors of the standard library, and the cause of the caller's cancellation.
//   - A key is sent only to the base URL that it is configured for. Requests go only to presets of remote
//     servers, configured providers and base URLs that the operator allows, see [Adapter.Resolve].
//   - An error quotes an error response only if it is an error object or a plain text of a preset or a
//     configured provider. Errors of [KindInvalidAnswer] and [KindToolCall] may quote the answer.
//   - Requests are valid for the provider, whatever the conversation contains: every tool call has
//     its result, the system message comes first, no message is empty. Package internal/ordering
//     checks the rules of the providers. The conversation itself is not modified.
//   - An attachment that cannot be sent or read is replaced by a note to the model.
package llm
