package hook

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// ErrBroken is wrapped by failures that would repeat, such as an invalid answer of a webhook. They
// are not retried, except those of [Hook.OnEvent].
var ErrBroken = errors.New("broken")

const (
	DefaultTimeout = 10 * time.Second
	// PartialTimeout bounds the checks of an answer after it was interrupted.
	PartialTimeout = 3 * time.Second
	MaxHooks       = 16 // of a worker
	// MaxChangeBytes bounds the JSON of all changes of a request. One change has up to
	// [event.MaxHookChangeBytes].
	MaxChangeBytes = 32 << 10
	MaxTextBytes   = 512 << 10 // of a changed answer
)

// Hook checks the attempts of all contexts of a worker, or receives their events. Its functions are
// called concurrently. At least one of them is set.
type Hook struct {
	Name string // in events and errors; unique in a worker
	// Before checks a request, and After an answer.
	Before func(context.Context, Request) (Verdict, error)
	After  func(context.Context, Request, Response) (Verdict, error)
	// OnEvent receives the recorded events of each context in order, at least once.
	OnEvent func(context.Context, Events) error
	// FromStart delivers the log of a context from its first event. Otherwise, OnEvent receives the
	// events of the first run that begins on a worker with the hook, and of later runs.
	FromStart bool
	// SkipAfter is how old an event must be, and how long an [Open] hook must have failed, before the
	// event is skipped. 0: [DefaultSkipAfter].
	SkipAfter time.Duration
	// Beside runs the function Before while the model answers. The request is sent without waiting for the
	// function, so the function cannot change it.
	Beside bool
	// Withhold publishes no delta before the verdict. It requires Beside or After.
	Withhold bool
	// Timeout bounds each call. 0: [DefaultTimeout].
	Timeout time.Duration
	// OnFailure is what happens to the attempt or the events if the hook fails. Empty: [Closed].
	OnFailure OnFailure
}

// OnFailure is what happens to an attempt, or to events, if a hook fails.
type OnFailure string

const (
	// Closed: the hook or its attempt is retried; after the last retry, the request fails. Events are
	// delivered again until they are accepted.
	Closed OnFailure = "closed"
	// Open: the attempt passes, which is recorded. Events are skipped after SkipAfter.
	Open OnFailure = "open"
)

// Request is the request of an attempt. It must not be modified.
type Request struct {
	ContextName string                `json:"contextName"` // TENANT/NAME in a tenant, unlike in events
	RequestID   string                `json:"requestId"`   // unique in the context
	Attempt     int                   `json:"attempt"`     // counts from 1, over all steps of a turn
	ProviderID  string                `json:"providerId"`
	Model       string                `json:"model"`
	Messages    []reducer.Message     `json:"messages"` // the system message first, if there is one
	Settings    event.RequestSettings `json:"settings"`
	Tools       []string              `json:"tools,omitempty"` // names of the offered tools
	// Purpose is [event.PurposeCompaction] if the answer will be a summary that replaces messages, and
	// empty for an answer to the user.
	Purpose event.Purpose `json:"purpose,omitempty"`
	// Repair asks the model to correct an answer that does not match the response format. The model receives it after
	// the messages, as an assistant message with the answer and a user message with the problem. Hooks cannot change
	// it. Nil: none.
	Repair *reducer.Repair `json:"repair,omitempty"`
}

// Response is the answer of an attempt.
type Response struct {
	Text      string `json:"text"`
	Reasoning string `json:"reasoning,omitempty"` // the part that the settings keep
	Calls     []Call `json:"toolCalls,omitempty"`
	Partial   bool   `json:"partial,omitempty"` // interrupted
}

// Call is a tool call of an answer. Hooks cannot change it; they can only refuse the answer.
type Call struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Error     string          `json:"error,omitempty"` // of an invalid call, which is not executed; may quote its arguments
}

// Verdict is the decision of a hook. Its zero value lets the attempt pass. Refuse and Reason are
// recorded without secrets, and truncated to 400 bytes.
type Verdict struct {
	Refuse string  `json:"refuse,omitempty"` // why the request or answer is refused; empty: it passes
	Change *Change `json:"change,omitempty"` // nil: none
	Reason string  `json:"reason,omitempty"` // of the change
}

// Change is a change of a request or of an answer: either HookChange or Text is set.
type Change struct {
	event.HookChange // of a request
	// Text is that of an answer, up to [MaxTextBytes]; nil: unchanged. If the answer has the response
	// format of the settings, so must the text.
	Text *string `json:"text,omitempty"`
}

// Refuse returns a verdict that refuses an attempt.
func Refuse(reason string) Verdict { return Verdict{Refuse: cmp.Or(reason, "no reason given")} }

// ChangeRequest returns a verdict that changes a request, for example its settings.
func ChangeRequest(change event.HookChange, reason string) Verdict {
	return Verdict{Change: &Change{HookChange: change}, Reason: reason}
}

// AddInstructions returns a verdict that appends a text to the system message of a request.
func AddInstructions(text, reason string) Verdict {
	return ChangeRequest(event.HookChange{Instructions: text}, reason)
}

// ReplaceMessages returns a verdict that replaces the content of messages of a request, by the id of their event.
func ReplaceMessages(messages []event.ReplacedMessage, reason string) Verdict {
	return ChangeRequest(event.HookChange{Messages: messages}, reason)
}

// ReplaceText returns a verdict that replaces the text of an answer.
func ReplaceText(text, reason string) Verdict {
	return Verdict{Change: &Change{Text: &text}, Reason: reason}
}

// Validate returns an error for an invalid hook, a repeated name, or more than [MaxHooks] hooks.
func Validate(hooks []Hook) error {
	if n := len(hooks); n > MaxHooks {
		return fmt.Errorf("%d hooks (at most %d)", n, MaxHooks)
	}
	names := map[string]bool{}
	for _, h := range hooks {
		if err := event.ValidateName("name", h.Name); err != nil {
			return fmt.Errorf("hook %q: %w", event.Redact(h.Name, 64), err)
		}
		if names[h.Name] {
			return fmt.Errorf("hook %s: another hook has the same name", h.Name)
		}
		names[h.Name] = true
		if err := h.validate(); err != nil {
			return fmt.Errorf("hook %s: %w", h.Name, err)
		}
	}
	return nil
}

func (h Hook) validate() error {
	switch {
	case h.Before == nil && h.After == nil && h.OnEvent == nil:
		return fmt.Errorf("neither Before, After nor OnEvent is set")
	case h.FromStart && h.OnEvent == nil:
		return fmt.Errorf("field FromStart requires OnEvent")
	case h.SkipAfter != 0 && (h.OnEvent == nil || h.OnFailure != Open):
		return fmt.Errorf("field SkipAfter requires OnEvent and OnFailure %s", Open)
	case h.SkipAfter < 0:
		return fmt.Errorf("field SkipAfter: want 0s or more, got %v", h.SkipAfter)
	case h.Beside && h.Before == nil:
		return fmt.Errorf("field Beside requires Before")
	case h.Withhold && !h.Beside && h.After == nil:
		return fmt.Errorf("field Withhold requires Beside or After (deltas always follow the verdict of Before)")
	case h.Timeout < 0:
		return fmt.Errorf("timeout %v: want 0s or more", h.Timeout)
	case h.OnFailure != "" && h.OnFailure != Closed && h.OnFailure != Open:
		return fmt.Errorf("field OnFailure %q: want %s or %s", h.OnFailure, Closed, Open)
	}
	return nil
}

// Validate returns an error for a verdict that is invalid at a stage.
func (v Verdict) Validate(stage event.HookStage) error {
	if v.Change == nil || v.Refuse != "" {
		return nil
	}
	switch stage {
	case event.HookBefore:
		if v.Change.Text != nil {
			return fmt.Errorf("the change of a request cannot contain a text")
		}
		if err := v.Change.Validate(); err != nil {
			return fmt.Errorf("change: %w", err)
		}
	case event.HookBeside:
		return fmt.Errorf("a Beside hook cannot change the request (it was already sent)")
	case event.HookAfter:
		if !v.Change.IsZero() {
			return fmt.Errorf("the change of an answer can contain only a text")
		}
		if v.Change.Text != nil && len(*v.Change.Text) > MaxTextBytes {
			return fmt.Errorf("the text has %d bytes (at most %d)", len(*v.Change.Text), MaxTextBytes)
		}
	}
	return nil
}

// Apply returns messages and settings with a change applied, and does not modify its arguments. It
// returns an error if the change replaces the content of a message that messages does not contain.
func Apply(c event.HookChange, messages []reducer.Message, settings event.RequestSettings) ([]reducer.Message, event.RequestSettings, error) {
	if c.Settings != nil {
		settings = settings.Override(*c.Settings)
	}
	if c.Instructions == "" && len(c.Messages) == 0 {
		return messages, settings, nil
	}
	changed := make([]reducer.Message, 0, len(messages)+1)
	if c.Instructions != "" && (len(messages) == 0 || messages[0].Role != reducer.RoleSystem) {
		changed = append(changed, reducer.Message{Role: reducer.RoleSystem})
	}
	changed = append(changed, messages...)
	for _, replaced := range c.Messages {
		found := false
		for i := range changed {
			if changed[i].EventID == replaced.EventID {
				// The provider state could repeat the content.
				changed[i].Content, changed[i].ProviderState, found = replaced.Content, nil, true
			}
		}
		if !found {
			return nil, settings, fmt.Errorf("change: the request has no message %s", replaced.EventID)
		}
	}
	if c.Instructions != "" {
		if changed[0].Content != "" {
			changed[0].Content += "\n\n"
		}
		changed[0].Content += c.Instructions
	}
	return changed, settings, nil
}
