package event

import (
	"cmp"
	"encoding/json"
)

// SystemPrompt sets the system message of a context.
//
//doc:effect sets the system message; empty removes it
type SystemPrompt struct {
	Content string `json:"content"` // empty removes the message
}

const TagSystemPrompt Tag = "SystemPromptEvent"

func (SystemPrompt) Tag() Tag { return TagSystemPrompt }

func (b SystemPrompt) validate() error { return text("content", b.Content) }

func (b SystemPrompt) Words() (subject, text string) {
	return "system prompt", cmp.Or(b.Content, "(removed)")
}

func (SystemPrompt) example() Body { return SystemPrompt{Content: "Be brief"} }

// UserMessage is a message of the user, with all files attached since the previous message.
//
//doc:effect adds a user message with the pending attachments; requests an answer unless `triggersTurn` is false; `settings` are [request settings](#request-settings) for this turn only
type UserMessage struct {
	Content      string `json:"content"`                // may be empty if files are attached
	TriggersTurn *bool  `json:"triggersTurn,omitempty"` // whether the model answers; absent means true
	// Settings override those of the context while this is the newest message that triggers a turn. A queued
	// message counts from the time when the context answers it.
	Settings *RequestSettings `json:"settings,omitempty"`
}

const TagUserMessage Tag = "UserMessageEvent"

func (UserMessage) Tag() Tag { return TagUserMessage }

func (b UserMessage) validate() error {
	if err := text("content", b.Content); err != nil || b.Settings == nil {
		return err
	}
	return within("settings", b.Settings.validate())
}

// Triggers reports whether the model answers.
func (m UserMessage) Triggers() bool { return m.TriggersTurn == nil || *m.TriggersTurn }

func (b UserMessage) Words() (subject, text string) { return "user", b.Content }

func (UserMessage) example() Body {
	return UserMessage{Content: "Hello", TriggersTurn: new(true), Settings: &RequestSettings{Temperature: new(0.0)}}
}

// AssistantMessage is an answer of the model, or one supplied by a client.
//
//doc:effect adds an assistant message after the last message that its request contained
type AssistantMessage struct {
	Content string `json:"content"`
	// The request that the message answers; absent if a client sent it.
	RequestID string `json:"requestId,omitempty" schema:"id"`
	// The newest event that the request included: the message follows it, before later events. Absent: at the end.
	ThroughEventID string `json:"throughEventId,omitempty" schema:"id"`
	// Whether the answer is partial: it was stopped before its end. The content is empty if it was interrupted during
	// reasoning.
	Partial bool `json:"partial,omitempty"`
	// The reasoning text that the provider returned, at most [MaxReasoningBytes]. It is never sent to a model.
	Reasoning     string         `json:"reasoning,omitempty"`
	ProviderState *ProviderState `json:"providerState,omitempty"`
}

const TagAssistantMessage Tag = "AssistantMessageEvent"

func (AssistantMessage) Tag() Tag          { return TagAssistantMessage }
func (b AssistantMessage) Request() string { return b.RequestID }

func (b AssistantMessage) validate() error {
	if err := text("content", b.Content); err != nil {
		return err
	}
	if err := text("reasoning", b.Reasoning); err != nil {
		return err
	}
	if len(b.Reasoning) > MaxReasoningBytes {
		return fieldf("reasoning", "%d bytes (at most %d)", len(b.Reasoning), MaxReasoningBytes)
	}
	if b.ProviderState == nil {
		return nil
	}
	return b.ProviderState.Validate()
}

func (b AssistantMessage) Words() (subject, text string) {
	if b.Partial {
		return "assistant (partial)", b.Content
	}
	return "assistant", b.Content
}

func (AssistantMessage) example() Body {
	return AssistantMessage{
		Content: "Hi there!", RequestID: "demo:r0001", ThroughEventID: "demo:0001", Reasoning: "The user greets me",
		ProviderState: &ProviderState{
			ProviderID: "openrouter", Model: "openai/gpt-5", BaseURL: "https://openrouter.ai/api/v1",
			Data: []byte(`{"reasoning_details":[{"type":"reasoning.encrypted","data":"c2lnbmVk"}]}`),
		},
	}
}

// Bounds of an [AssistantMessage].
const (
	// MaxAnswerBytes bounds the content of an answer of a worker: a history must be able to store it. A
	// longer answer is truncated and has the finish reason "length".
	MaxAnswerBytes        = 768 << 10
	MaxReasoningBytes     = 256 << 10
	MaxProviderStateBytes = 256 << 10
	maxCallIDs            = 128
)

// ProviderState is what the provider of an answer receives back exactly, such as encrypted reasoning. It is sent only
// to the same model of the same provider at the same URL. Data, CallIDs or both are set.
//
//schema:rules {"anyOf":[{"required":["data"]},{"required":["callIds"]}],"properties":{"baseUrl":{"pattern":"^[Hh][Tt][Tt][Pp][Ss]?://"}}}
type ProviderState struct {
	ProviderID string          `json:"providerId" schema:"is=Name"`
	Model      string          `json:"model" schema:"is=Name"`
	BaseURL    string          `json:"baseUrl" schema:"max=maxURLBytes"`    // the URL that the answer came from
	Data       json.RawMessage `json:"data,omitempty" schema:"type=object"` // at most [MaxProviderStateBytes] of JSON
	// The ids of the tool calls as the provider sent them, in order, up to [MaxProviderStateBytes]; absent: those of
	// the [ToolCall] events.
	CallIDs []string `json:"callIds,omitempty" schema:"max=maxCallIDs"`
}

// UnmarshalJSON compacts Data without changing its values, because providers sign them.
func (s *ProviderState) UnmarshalJSON(data []byte) error {
	type plain ProviderState
	if err := json.Unmarshal(data, (*plain)(s)); err != nil {
		return err
	}
	if len(s.Data) == 0 {
		return nil
	}
	var err error
	s.Data, err = compact(s.Data)
	return err
}

// Validate returns a [*FieldError] for the first invalid field.
func (s ProviderState) Validate() error {
	if err := ValidateName("providerState.providerId", s.ProviderID); err != nil {
		return err
	}
	if err := ValidateName("providerState.model", s.Model); err != nil {
		return err
	}
	if err := validateBaseURL("providerState.baseUrl", s.BaseURL); err != nil {
		return err
	}
	if s.BaseURL == "" {
		return fieldf("providerState.baseUrl", "missing")
	}
	if len(s.Data) > MaxProviderStateBytes {
		return fieldf("providerState.data", "%d bytes (at most %d)", len(s.Data), MaxProviderStateBytes)
	}
	size := 0
	for _, id := range s.CallIDs {
		size += len(id)
		if err := text("providerState.callIds", id); err != nil {
			return err
		}
	}
	if len(s.CallIDs) > maxCallIDs || size > MaxProviderStateBytes {
		return fieldf("providerState.callIds", "%d ids with %d bytes (at most %d and %d)", len(s.CallIDs), size, maxCallIDs, MaxProviderStateBytes)
	}
	if len(s.Data) == 0 && len(s.CallIDs) > 0 {
		return nil
	}
	if len(s.Data) == 0 || s.Data[0] != '{' {
		return fieldf("providerState.data", "want an object")
	}
	if err := value("providerState.data", s.Data); err != nil {
		return err
	}
	if isTooDeep(s.Data, maxNestingDepth) {
		return fieldf("providerState.data", "nested more than %d levels deep", maxNestingDepth)
	}
	return nil
}
