package activities

import (
	"context"
	"encoding/json"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Tools are the tools of a worker. All workers of a task queue need the same tools.
type Tools interface {
	// Offer returns the tools of a context in a stable order. An error fails the attempt; it may
	// be of type [*ModelError].
	Offer(context.Context, OfferRequest) ([]Tool, error)
	// Call calls a tool. The context ends at the timeout, a cancellation or the shutdown of the
	// worker.
	Call(context.Context, ToolCallRequest) ToolCallResult
}

// OfferRequest asks for the tools of a context.
type OfferRequest struct {
	ContextName string
	// RequestID is the same in all steps of a turn.
	RequestID string
	Config    event.SetTools
}

// Tool is a tool that a worker offers to models.
type Tool struct {
	ToolDefinition
	// Canonical is the name in [event.SetTools], such as mcp:files/read. Empty: Name.
	Canonical string
	// Idempotent means that a repeated call with the same id has no further effect. Only such a
	// call is repeated when its worker dies.
	Idempotent bool
	// Timeout bounds a call. 0: [DefaultToolTimeout].
	Timeout time.Duration
	// Attempts is the maximum number of attempts of a call that fails with a retryable error, if
	// the tool is idempotent. 0: one.
	Attempts int
}

// ToolDefinition describes a tool to a model.
type ToolDefinition struct {
	// Name is unique in a request: 1 to 64 of A-Z a-z 0-9 _ -.
	Name        string
	Description string
	// Parameters is the JSON Schema of the arguments, an object.
	Parameters event.Object
}

// DefaultToolTimeout is the timeout of a tool without one.
const DefaultToolTimeout = time.Minute

// ToolCallRequest is a call of a tool of a worker. Its arguments match the schema, except those that
// an approval edited: validate them.
type ToolCallRequest struct {
	ContextName, RequestID string
	// ToolCallID is unique in the context, and the same for all attempts of a call.
	ToolCallID string
	// Name is the name in the [ToolDefinition].
	Name      string
	Arguments json.RawMessage
	// Progress publishes the progress of the call. Nil: progress is not published. Texts that
	// arrive too fast are dropped.
	Progress func(text string)
}

// ToolCallResult is the result of a call: a value, or an error for the model.
type ToolCallResult struct {
	Value, Error json.RawMessage
	IsError      bool
	// Retryable means that the call failed and may succeed later.
	Retryable bool
}

// CallToolInput is the input of the activity CallTool.
type CallToolInput struct {
	ContextName string          `json:"contextName"`
	RequestID   string          `json:"requestId"`
	ToolCallID  string          `json:"toolCallId"`
	Name        string          `json:"name"`
	Arguments   json.RawMessage `json:"arguments,omitempty"`
	// TimeoutMs bounds each attempt. 0: [DefaultToolTimeout].
	TimeoutMs int64 `json:"timeoutMs,omitempty"`
	// MaxAttempts is the number of attempts. 0: one.
	MaxAttempts int `json:"maxAttempts,omitempty"`
}

// CallToolResult is the result of the activity CallTool.
type CallToolResult struct {
	Value      json.RawMessage `json:"value,omitempty"`
	Error      json.RawMessage `json:"error,omitempty"`
	IsError    bool            `json:"isError,omitempty"`
	DurationMs int64           `json:"durationMs,omitempty"`
}
