package event

import (
	"cmp"
	"encoding/json"
	"log/slog"
	"time"
)

// ApprovalRequested records that a tool call waits for an [ApprovalDecided].
//
//doc:effect when a tool call waits for an approval
type ApprovalRequested struct {
	ToolCallID string    `json:"toolCallId" schema:"min=1"`
	RequestID  string    `json:"requestId" schema:"id,min=1"`
	ExpiresAt  time.Time `json:"expiresAt"` // when the call gets an error result if there is no decision
}

const TagApprovalRequested Tag = "ApprovalRequestedEvent"

func (ApprovalRequested) Tag() Tag          { return TagApprovalRequested }
func (b ApprovalRequested) Request() string { return b.RequestID }

func (b ApprovalRequested) validate() error {
	if b.ToolCallID == "" {
		return fieldf("toolCallId", "empty")
	}
	return requestID(b.RequestID)
}

func (b ApprovalRequested) Words() (subject, text string) {
	return "approval requested", b.ToolCallID + ", until " + b.ExpiresAt.Local().Format(time.DateTime)
}

func (b ApprovalRequested) Line() Line {
	return Line{slog.LevelInfo, "tool call waits for an approval", []any{"call", LoggedName(b.ToolCallID)}}
}

func (ApprovalRequested) example() Body {
	return ApprovalRequested{ToolCallID: "call_0", RequestID: "demo:r0001", ExpiresAt: time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)}
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

const TagApprovalDecided Tag = "ApprovalDecidedEvent"

func (ApprovalDecided) Tag() Tag { return TagApprovalDecided }

func (b ApprovalDecided) validate() error {
	if err := known("decision", b.Decision); err != nil {
		return err
	}
	switch {
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

func (b ApprovalDecided) Words() (subject, text string) {
	subject, text = "approved", cmp.Or(b.ToolCallID, "all calls that wait")
	if b.Decision == Deny {
		subject = "denied"
	}
	if b.DecidedBy != "" {
		text += " by " + b.DecidedBy
	}
	if b.Reason != "" {
		text += ": " + b.Reason
	}
	if len(b.Parameters) > 0 {
		text += ", with " + string(b.Parameters)
	}
	return subject, text
}

func (b ApprovalDecided) Line() Line {
	return Line{slog.LevelInfo, "tool call decided", []any{"decision", string(b.Decision), "call", LoggedName(b.ToolCallID)}}
}

func (ApprovalDecided) example() Body {
	return ApprovalDecided{
		ToolCallID: "call_0", Decision: Approve, Reason: "looks fine", Parameters: []byte(`{"city":"Rome"}`), DecidedBy: "ann@example.com",
	}
}

// Decision is a decision about a tool call.
type Decision string

// Decisions.
const (
	Approve Decision = "approve"
	Deny    Decision = "deny"
)

// Values returns all values.
func (Decision) Values() []Decision {
	return []Decision{Approve, Deny}
}

// MaxApprovalReasonBytes bounds the reason of a decision.
const MaxApprovalReasonBytes = 4 << 10
