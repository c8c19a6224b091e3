package reducer

import (
	"encoding/json"
	"time"
)

// Call is a tool call of the running request without a result. Its JSON is persisted.
type Call struct {
	// ID is unique in the context. It is the idempotency key of the call.
	ID string `json:"id"`
	// Name is the name of the tool as sent to models.
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	State     CallState       `json:"state"`
	// Client means that a client executes the call and sends its result.
	Client bool `json:"client,omitempty"`
	// Idempotent means that the call may be executed again. TimeoutMs and Attempts are those of the
	// tool.
	Idempotent bool  `json:"idempotent,omitempty"`
	TimeoutMs  int64 `json:"timeoutMs,omitempty"`
	Attempts   int   `json:"attempts,omitempty"`
	// Deadline is when a call that waits for an approval or a client expires; zero otherwise.
	Deadline time.Time `json:"deadline,omitzero"`
	// Error is the error result of a call that is not executed; "" for none.
	Error string `json:"error,omitempty"`
}

// CallState is what a [Call] waits for.
type CallState string

const (
	// CallQueued: for another call, because of the parallel limit.
	CallQueued CallState = "queued"
	// CallRunning: for the result of the worker.
	CallRunning CallState = "running"
	// CallApproval: for an [event.ApprovalDecided].
	CallApproval CallState = "approval"
	// CallClient: for an [event.ToolResult] of a client.
	CallClient CallState = "client"
)

// CalledTool is a tool call of an answer, after the worker has resolved the tool, validated the
// arguments and evaluated the approval rules.
type CalledTool struct {
	// ID is that of the provider; it may be empty or not unique.
	ID        string
	Name      string
	Arguments json.RawMessage
	// Error is the error result of a call that must not be executed; "" for none.
	Error string
	// Client means that the tool is one of a client, Approve that the call requires an approval.
	Client, Approve bool
	Idempotent      bool
	TimeoutMs       int64
	Attempts        int
}

// CallOutcome is how the execution of a call ended.
type CallOutcome string

const (
	// CallReturned: the tool returned a value or an error.
	CallReturned CallOutcome = "returned"
	// CallLost: the worker died or did not report the result.
	CallLost CallOutcome = "lost"
	// CallCancelled: the call was cancelled before it returned.
	CallCancelled CallOutcome = "cancelled"
)

// MaxCalls bounds the tool calls of an answer. Further ones are dropped.
const MaxCalls = 128
