// Package ordering checks requests by the rules of model providers: which messages may follow
// which, what tool calls and their results must look like, and which reasoning must be sent back.
//
//	for _, violation := range ordering.Check("mistral", body) {
//		t.Error(violation)
//	}
//
// The rules follow the documentation of the providers; each [Rule] names its source. The package
// shares no code with the renderer of package llm, so that it can test the renderer. It reads
// requests as JSON.
//
// A provider can still reject a request without violations: the package does not check models, size
// limits, or parameters that do not concern tools.
package ordering
