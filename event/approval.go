package event

import (
	"encoding/json"
	"slices"
	"time"
)

// Decision is a decision about a tool call.
type Decision string

// Decisions.
const (
	Approve Decision = "approve"
	Deny    Decision = "deny"
)

var decisions = []Decision{Approve, Deny}

// ApprovalRequested records that a tool call waits for an [ApprovalDecided].
//
//doc:effect when a tool call waits for an approval
type ApprovalRequested struct {
	ToolCallID string    `json:"toolCallId" schema:"min=1"`
	RequestID  string    `json:"requestId" schema:"id,min=1"`
	ExpiresAt  time.Time `json:"expiresAt"` // when the call gets an error result if there is no decision
}

// ApprovalDecided decides about tool calls that wait for an approval. A denied call gets an error result.
//
//schema:rules {"properties":{"decidedBy":{"anyOf":[{"$ref":"Name"},{"const":""}]}}}
//doc:effect decides about a call that waits for an [approval](#tools); without `toolCallId`, about all that wait. `parameters` replace the arguments of the call
type ApprovalDecided struct {
	// The call; absent or empty: all calls that wait.
	ToolCallID string   `json:"toolCallId,omitempty"`
	Decision   Decision `json:"decision"`
	// The model receives the reason of a denial.
	Reason string `json:"reason,omitempty" schema:"max=MaxApprovalReasonBytes"`
	// Replaces the arguments of an approved call, at most [MaxArgumentBytes]; absent: unchanged. Requires a ToolCallID.
	Parameters json.RawMessage `json:"parameters,omitempty" schema:"type=object"`
	DecidedBy  string          `json:"decidedBy,omitempty"` // who decided; not verified
}

// MaxApprovalReasonBytes bounds the reason of a decision.
const MaxApprovalReasonBytes = 4 << 10

// MaxArgumentBytes is the maximum size of the arguments of a tool call.
const MaxArgumentBytes = 256 << 10

// MaxProgressBytes bounds the text of a [ToolProgress].
const MaxProgressBytes = 1 << 10

// ToolProgress is the newest text about a running tool call. It is never recorded.
//
//doc:effect the progress of a running tool call. Each `text` replaces the previous one; `index` increases with the texts of a call and has gaps
type ToolProgress struct {
	RequestID  string `json:"requestId" schema:"id,min=1"`
	ToolCallID string `json:"toolCallId" schema:"min=1"`
	Index      int    `json:"index" schema:"min=0"` // increases from text to text of a call; may have gaps
	Text       string `json:"text"`                 // replaces the previous text
}

func (b ApprovalRequested) validate() error {
	if b.ToolCallID == "" {
		return fieldf("toolCallId", "empty")
	}
	return requestID(b.RequestID)
}

func (b ApprovalDecided) validate() error {
	switch {
	case !slices.Contains(decisions, b.Decision):
		return fieldf("decision", "want %s, got %s", oneOf(decisions), quote(string(b.Decision)))
	case len(b.Reason) > MaxApprovalReasonBytes:
		return fieldf("reason", "%d bytes (at most %d)", len(b.Reason), MaxApprovalReasonBytes)
	case b.DecidedBy != "" && ValidateName("decidedBy", b.DecidedBy) != nil:
		return ValidateName("decidedBy", b.DecidedBy)
	}
	if err := text("reason", b.Reason); err != nil || len(b.Parameters) == 0 {
		return err
	}
	switch {
	case b.Decision != Approve:
		return fieldf("parameters", "set with the decision %s (want %s)", b.Decision, Approve)
	case b.ToolCallID == "":
		return fieldf("parameters", "set without a toolCallId (want one call)")
	case len(b.Parameters) > MaxArgumentBytes:
		return fieldf("parameters", "%d bytes (at most %d)", len(b.Parameters), MaxArgumentBytes)
	case b.Parameters[0] != '{':
		return fieldf("parameters", "want an object, got %s", describe(b.Parameters))
	}
	return value("parameters", b.Parameters)
}

func (b ToolProgress) validate() error {
	if b.ToolCallID == "" {
		return fieldf("toolCallId", "empty")
	}
	return requestID(b.RequestID)
}
