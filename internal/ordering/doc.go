// Package ordering checks requests by the rules of model providers: the order of messages, the form
// of tool calls and results, and the reasoning that must be sent back.
//
//	for _, violation := range ordering.Check("mistral", body) {
//		t.Error(violation)
//	}
//
// A [Memory] also checks what only a certain server demands: what it gave itself.
//
// The rules follow the documentation of the providers; each [Rule] names its source. The package
// shares no code with package llm, so that it can test the renderer of package llm.
//
// A provider can still reject a request without violations: the package does not check models, size
// limits, or parameters that do not concern tools.
package ordering
