// Package ordering checks requests by the rules of model providers: which messages may follow
// which, what tool calls and their results must look like, and which reasoning must be sent back.
//
//	for _, violation := range ordering.Check("mistral", body) {
//		t.Error(violation)
//	}
//
// The rules are written from the documents of the providers, which each [Rule] names. The package
// shares no code with the renderer of package llm, so that one can test the other. It knows
// requests only as JSON.
//
// A request without a violation can still be rejected: the package does not check models, limits
// of size, or parameters that do not concern tools.
package ordering
