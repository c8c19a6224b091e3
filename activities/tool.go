package activities

import (
	"context"
	"encoding/json"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
)

// Tools are the tools of a worker. All workers of a task queue need the same tools.
type Tools interface {
	// Offer returns the tools of a context in a stable order. An error, such as a [*ModelError], fails the
	// attempt, unless an earlier step of the turn has offered tools, which are then offered again.
	Offer(context.Context, OfferRequest) ([]Tool, error)
	// Call calls a tool. Its context ends at the timeout, a cancellation or the worker's shutdown.
	Call(context.Context, ToolCallRequest) ToolCallResult
}

// OfferRequest asks for the tools of a context.
type OfferRequest struct {
	ContextName string
	Config      event.SetTools
}

// Tool is a tool that a worker offers to models.
type Tool struct {
	ToolDefinition
	Canonical string // name in [event.SetTools], such as mcp:files/read; empty: Name
	// Idempotent means that a repeated call with the same id has no further effect. Only such a
	// call is repeated when its worker dies.
	Idempotent bool
	Timeout    time.Duration // of a call; 0: [DefaultToolTimeout]
	Attempts   int           // maximum for a call with retryable errors, if Idempotent; 0: one
	// Withheld is why the tool cannot be offered to models; it then has only a canonical name. Empty: it is offered.
	Withheld string
}

// ToolDefinition describes a tool to a model.
type ToolDefinition struct {
	Name        string // unique in a request: 1 to 64 of A-Z a-z 0-9 _ -
	Description string
	Parameters  event.Object // JSON Schema of the arguments, which are an object
}

// DefaultToolTimeout is the timeout of a tool without one.
const DefaultToolTimeout = time.Minute

// ToolCallRequest is a call of a worker's tool. Its arguments match the schema, unless an approval
// edited them or the schema is invalid, so validate them.
type ToolCallRequest struct {
	ContextName, RequestID string
	ToolCallID             string // unique in the context, the same for all attempts
	Name                   string // of the [ToolDefinition]
	Arguments              json.RawMessage
	Progress               func(text string) // drops texts that arrive too fast; nil: not published
	Blobs                  *archive.Blobs    // of the context, for what is too long for a result; nil: none
}

// ToolCallResult is the result of a call: a value, or an error for the model.
type ToolCallResult struct {
	Value, Error json.RawMessage
	IsError      bool
	Retryable    bool // failed, and may succeed later
}

// CallToolInput is the input of the activity CallTool.
type CallToolInput struct {
	ContextName string          `json:"contextName"`
	RequestID   string          `json:"requestId"`
	ToolCallID  string          `json:"toolCallId"`
	Name        string          `json:"name"`
	Arguments   json.RawMessage `json:"arguments,omitempty"`
	TimeoutMs   int64           `json:"timeoutMs,omitempty"`   // of each attempt; 0: [DefaultToolTimeout]
	MaxAttempts int             `json:"maxAttempts,omitempty"` // 0: one, for a tool that is not idempotent
	// Schema is set to validate the arguments of a client's call instead of executing it.
	Schema json.RawMessage `json:"schema,omitempty"`
}

// CallToolResult is the result of the activity CallTool.
type CallToolResult struct {
	Value      json.RawMessage `json:"value,omitempty"`
	Error      json.RawMessage `json:"error,omitempty"`
	IsError    bool            `json:"isError,omitempty"`
	DurationMs int64           `json:"durationMs,omitempty"`
}
