// Package llm sends conversations to language models: a thin adapter over go-openai that
// streams answers and classifies errors.
//
//	adapter := llm.New(llm.Options{Defaults: llm.DefaultsFromEnv(os.Getenv)})
//	target, err := adapter.Resolve(reduced.Config.Primary) // URL, key, quirks
//	result, err := target.Stream(ctx, reduced.Messages, func(d llm.Delta) {
//		fmt.Print(d.Text)
//	})
//
// The conversation is rendered for the provider (render.go, message.go, attachment.go); later
// requests reuse the unchanged part (rendered.go). go-openai sends the request through two thin
// layers: transport.go inserts the messages and the request settings (parameters.go, format.go)
// and keeps the parts of error responses that go-openai drops, and eventbody.go passes on only
// the data lines of an event stream. reasoning.go reads the reasoning of a model and the provider
// state, and state.go returns that state in later requests. Failures become an [Error]
// (classify.go, media.go), including timeouts between tokens (tokentimeout.go).
//
// Guarantees:
//   - An answer is complete or there is an error: a stream without a finish reason is never an
//     answer. The text before the error is in the [Result] returned with it.
//   - The package does not retry; [Error.Retryable] and [Error.RetryAfter] tell the caller
//     whether and when to.
//   - No error contains the API key or a probable secret, neither in its text nor in the errors
//     it wraps.
//   - A key is sent only to the base URL that it is configured for. Requests go to configured
//     providers and to base URLs that the operator allows, see [Adapter.Resolve]. Redirects are
//     not followed.
//   - Errors repeat the response of a server only if it is the error object of a configured
//     provider.
//   - Requests are valid for the provider, whatever the conversation contains: every tool call
//     has its result, the system message comes first, no message is empty. Package
//     llmtest/ordering checks the rules of the providers. The conversation itself is not modified.
//   - A request does not depend on earlier requests. Renderings kept for the next request of a
//     [Target.Conversation] form an LRU cache of at most 64 MiB.
//   - An attachment that the provider does not accept, or that cannot be read, is replaced by a
//     note to the model.
package llm
