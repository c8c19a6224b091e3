package event

import (
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
)

// HookApplied records what a hook of the operator did to an attempt. A hook that succeeded and
// let the attempt pass unchanged is not recorded.
//
//doc:effect when a [hook](#hooks) changed or refused a request or an answer, or failed and let the attempt pass
type HookApplied struct {
	RequestID string `json:"requestId" schema:"id,min=1"`
	Attempt   int    `json:"attempt" schema:"min=1"`
	Hook      string `json:"hook" schema:"is=Name"` // the name of the hook
	// `before`: before the request was sent; `beside`: while the model answered; `after`: after the answer.
	Stage HookStage `json:"stage"`
	// `changed`: the hook changed the request; `refused`: it refused the request or the answer; `failed`: it failed,
	// and the attempt continued without it.
	Outcome HookOutcome `json:"outcome"`
	Reason  string      `json:"reason,omitempty" schema:"max=MaxHookReasonBytes"` // at most [MaxHookReasonBytes]
	// Change is set if the hook changed the request. A changed answer is recorded only as its
	// [AssistantMessage]: a hook may remove content that the log should not contain.
	Change *HookChange `json:"change,omitempty"`
}

const TagHookApplied Tag = "HookAppliedEvent"

func (HookApplied) Tag() Tag          { return TagHookApplied }
func (b HookApplied) Request() string { return b.RequestID }

func (b HookApplied) validate() error {
	if b.Attempt < 1 {
		return fieldf("attempt", "want 1 or more, got %d", b.Attempt)
	}
	if err := cmp.Or(requestID(b.RequestID), ValidateName("hook", b.Hook), known("stage", b.Stage), known("outcome", b.Outcome)); err != nil {
		return err
	}
	if err := text("reason", b.Reason); err != nil {
		return err
	}
	if len(b.Reason) > MaxHookReasonBytes {
		return fieldf("reason", "%d bytes (at most %d)", len(b.Reason), MaxHookReasonBytes)
	}
	if b.Change == nil {
		return nil
	}
	return within("change", b.Change.Validate())
}

// String describes what the hook did: "changed the request (demo:0002): names removed".
func (b HookApplied) String() string {
	what, done := "the request", string(b.Outcome)
	if b.Stage == HookAfter {
		what = "the answer"
	}
	if b.Outcome == HookFailed {
		what, done = what+" unchecked", "failed and left"
	}
	words := done + " " + what
	if b.Change != nil {
		words += " (" + cmp.Or(b.Change.String(), "nothing") + ")"
	}
	if b.Reason != "" {
		words += ": " + b.Reason
	}
	return words
}

func (b HookApplied) Words() (subject, text string) { return "hook " + b.Hook, b.String() }

func (b HookApplied) Line() Line {
	fields := []any{"attempt", b.Attempt, "hook", b.Hook, "stage", string(b.Stage), "outcome", string(b.Outcome)}
	if b.Outcome == HookFailed {
		return Line{slog.LevelWarn, "hook failed; the attempt continues without its verdict", fields}
	}
	return Line{slog.LevelInfo, "hook applied", fields}
}

func (HookApplied) example() Body {
	return HookApplied{
		RequestID: "demo:r0001", Attempt: 1, Hook: "pii", Stage: HookBefore, Outcome: HookChanged, Reason: "names removed",
		Change: &HookChange{
			Instructions: "Do not guess names.", Messages: []ReplacedMessage{{EventID: "demo:0001", Content: "Hello from [name]"}},
			Settings: &RequestSettings{Temperature: new(0.0)},
		},
	}
}

// HookStage is when a hook runs: before the request is sent, while the model answers, or after that.
type HookStage string

const (
	HookBefore HookStage = "before" // before the request is sent
	HookBeside HookStage = "beside" // while the model answers
	HookAfter  HookStage = "after"  // after the answer is complete or interrupted
)

// Values returns all values.
func (HookStage) Values() []HookStage {
	return []HookStage{HookBefore, HookBeside, HookAfter}
}

// HookOutcome is what a hook did.
type HookOutcome string

const (
	HookChanged HookOutcome = "changed"
	HookRefused HookOutcome = "refused" // the request or the answer
	HookFailed  HookOutcome = "failed"  // the hook failed, and its configuration lets attempts pass without it
)

// Values returns all values.
func (HookOutcome) Values() []HookOutcome {
	return []HookOutcome{HookChanged, HookRefused, HookFailed}
}

// HookChange is a change of the request of one attempt. Unset fields change nothing.
type HookChange struct {
	// Added at the end of the system message.
	Instructions string            `json:"instructions,omitempty"`
	Messages     []ReplacedMessage `json:"messages,omitempty"`
	// Settings that override those of the attempt.
	Settings *RequestSettings `json:"settings,omitempty"`
}

// IsZero reports whether the change changes nothing.
func (c HookChange) IsZero() bool {
	return c.Instructions == "" && len(c.Messages) == 0 && (c.Settings == nil || c.Settings.IsZero())
}

// Validate returns a [*FieldError] for the first invalid field.
func (c HookChange) Validate() error {
	if err := text("instructions", c.Instructions); err != nil {
		return err
	}
	for i, m := range c.Messages {
		field := fmt.Sprintf("messages.%d.", i)
		if Counter(m.EventID) == 0 {
			return fieldf(field+"eventId", "want the id of an event, like %s, got %s", FormatID("demo", 7), quote(m.EventID))
		}
		if err := text(field+"content", m.Content); err != nil {
			return err
		}
	}
	if c.Settings != nil {
		if err := c.Settings.validate(); err != nil {
			return within("settings", err)
		}
	}
	data, err := json.Marshal(c)
	if err != nil {
		return fieldf("", "cannot be encoded as JSON: %v", err)
	}
	if len(data) > MaxHookChangeBytes {
		return fieldf("", "%d bytes of JSON (at most %d)", len(data), MaxHookChangeBytes)
	}
	return nil
}

// String describes the fields that are set: "instructions, demo:0002, temperature 0".
func (c HookChange) String() string {
	var parts []string
	if c.Instructions != "" {
		parts = append(parts, "instructions")
	}
	for _, m := range c.Messages {
		parts = append(parts, m.EventID)
	}
	if c.Settings != nil && !c.Settings.IsZero() {
		parts = append(parts, c.Settings.String())
	}
	return strings.Join(parts, ", ")
}

// ReplacedMessage replaces the content of the message of the event EventID.
type ReplacedMessage struct {
	EventID string `json:"eventId" schema:"id"`
	Content string `json:"content"`
}

const (
	MaxHookReasonBytes = 1 << 10
	MaxHookChangeBytes = 16 << 10 // of the JSON of a change
)
