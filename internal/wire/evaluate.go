package wire

import (
	"encoding/json"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// WorkflowEvaluate is the type of the workflows that send a recorded question again, with an [Evaluation] as input and an
// [Evaluated] as result. Nothing is recorded in the context.
const WorkflowEvaluate = "Evaluate"

// EvaluationID returns the workflow id of an evaluation, which begins with the same text for all evaluations of a context.
func EvaluationID(contextName, id string) string { return evaluationPrefix + contextName + ":" + id }

const evaluationPrefix = "evaluate:"

// Evaluation is the request of a recorded answer, sent again. The messages, the settings and the tools are those of
// the log.
type Evaluation struct {
	ContextName string `json:"contextName"`
	Through     string `json:"throughEventId"` // the last event before the answer that the request is made of
	Answer      string `json:"answerEventId"`  // the answer: the log up to it has the tools that were offered
	// Provider receives the request; nil: the one of the log. Its UseDefault is the default of the worker.
	Provider *event.SetProviderConfig `json:"provider,omitempty"`
	System   *string                  `json:"system,omitempty"` // the system prompt; nil: that of the log
}

// Evaluated is an answer that is not recorded. Its tool calls are not executed.
type Evaluated struct {
	ProviderID   string          `json:"providerId,omitempty"`
	Model        string          `json:"model,omitempty"`
	Text         string          `json:"text,omitempty"`
	Calls        []EvaluatedCall `json:"calls,omitempty"`
	FinishReason string          `json:"finishReason,omitempty"`
	Error        string          `json:"error,omitempty"` // why there is no complete answer, redacted; empty: there is one
	DurationMs   int64           `json:"durationMs,omitempty"`
	event.Usage
}

// EvaluatedCall is a tool call of an answer.
type EvaluatedCall struct {
	Name      string          `json:"name"` // for models
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Error     string          `json:"error,omitempty"` // the mistake of the model; empty: the call is valid
}
