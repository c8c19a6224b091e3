package wire

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// Status is the status of a context.
type Status string

// Statuses of a context.
const (
	StatusIdle      Status = "idle"
	StatusAnswering Status = "answering"
	// StatusWaiting appears only in lists, which never show [StatusAnswering]: a tool call waits for an approval or for
	// the result of a client.
	StatusWaiting Status = "waiting"
	StatusClosed  Status = "closed"
)

// ListedStatusOf returns the status that [AttributeStatus] shows: StatusWaiting while a tool call waits for an
// approval or for the result of a client, else StatusIdle or StatusClosed. It does not change with each answer,
// because an update of search attributes costs a third of a turn.
func ListedStatusOf(s reducer.Session) Status {
	switch {
	case s.Ended:
		return StatusClosed
	case s.Request != nil && s.Request.Waits():
		return StatusWaiting
	default:
		return StatusIdle
	}
}

// StatusOf returns the status of a session.
func StatusOf(s reducer.Session) Status {
	switch {
	case s.Ended:
		return StatusClosed
	case s.Request != nil:
		return StatusAnswering
	default:
		return StatusIdle
	}
}

// State is the result of [QueryState]. It contains references to keys but no secrets.
type State struct {
	ContextName string `json:"contextName"`
	Status      Status `json:"status"`
	// What people know the context by, see SetDetailsEvent; absent: nothing.
	Details     reducer.Details `json:"details,omitzero"`
	EventCount  int             `json:"eventCount"` // the number of events in the log
	LastEventID string          `json:"lastEventId,omitempty" schema:"is=EventID"`
	Turns       int             `json:"turns"` // the number of requests that ended
	// The model of the newest request; absent before the first.
	Model string `json:"model,omitempty"`
	// The sum over the ended attempts of the context; absent before the first.
	Usage reducer.Usage `json:"usage,omitzero"`
	// The input and output tokens of the attempt with the newest answer, about the size of the conversation; absent
	// before the first answer and after a compaction until the next.
	ContextTokens int `json:"contextTokens,omitempty" schema:"min=1"`
	// The context window of Model in tokens, learned when the provider rejected a request as too long; absent if none
	// was.
	ContextWindow int               `json:"contextWindow,omitempty" schema:"min=1"`
	Metadata      map[string]string `json:"metadata,omitempty"` // the labels of the request settings
	Request       *reducer.Request  `json:"request,omitempty"`
	Config        reducer.Config    `json:"config"`
	MessageCount  int               `json:"messageCount"` // the total number of messages
	Messages      []reducer.Message `json:"messages"`     // the newest messages, up to 48 KiB
	// Files for the next user message.
	PendingAttachments []reducer.Attachment `json:"pendingAttachments,omitempty"`
	UpdatedAt          time.Time            `json:"updatedAt,omitzero"` // absent before the first event
}

// StateOf returns the result of [QueryState].
func StateOf(s reducer.Session, updatedAt time.Time) State {
	messages := []reducer.Message{}
	config, request := s.Reduced.Config, abridged(s.Request)
	config.Primary, config.Tools = s.Primary(), withoutSchemas(config.Tools)
	size := settingsSize(config.Request) + toolsSize(config.Tools) + jsonSize(s.Details) // they can be as large as many messages
	if len(config.Request.Labels) > 0 {
		size += jsonSize(config.Request.Labels)
	}
	if request != nil && len(request.Calls) > 0 {
		size += jsonSize(request.Calls)
	}
	for _, m := range slices.Backward(s.Reduced.Messages) {
		m.Attachments, m.ProviderState = withoutData(m.Attachments), nil
		data, err := json.Marshal(m)
		if size += len(data); err != nil || size > MaxStateBytes {
			break
		}
		messages = append(messages, m)
	}
	slices.Reverse(messages)
	return State{
		ContextName:        s.ContextName,
		Status:             StatusOf(s),
		Details:            s.Details,
		EventCount:         s.EventCount,
		LastEventID:        s.LastEventID(),
		Turns:              s.Turns,
		Model:              s.Model,
		Usage:              s.Usage,
		ContextTokens:      s.ContextTokens,
		ContextWindow:      s.LearnedWindow(s.ProviderID, s.Model),
		Metadata:           config.Request.Labels,
		Request:            request,
		Config:             config,
		MessageCount:       len(s.Reduced.Messages),
		Messages:           messages,
		PendingAttachments: withoutData(s.Reduced.PendingAttachments),
		UpdatedAt:          updatedAt,
	}
}

func settingsSize(settings event.RequestSettings) int {
	if settings.IsZero() {
		return 0
	}
	return jsonSize(settings)
}

func jsonSize(value any) int {
	data, err := json.Marshal(value)
	if err != nil {
		return 0
	}
	return len(data)
}

const maxStateTools = 8 << 10 // bytes of JSON

// withoutSchemas omits descriptions, schemas and conditions if the JSON of all tools exceeds maxStateTools.
func withoutSchemas(tools *event.SetTools) *event.SetTools {
	if toolsSize(tools) <= maxStateTools {
		return tools
	}
	short := *tools
	short.Tools, short.Approve = nil, nil
	for _, tool := range tools.Tools {
		short.Tools = append(short.Tools, event.Tool{Pattern: tool.Pattern, Name: tool.Name})
	}
	for _, rule := range tools.Approve {
		short.Approve = append(short.Approve, event.ApprovalRule{Tool: rule.Tool})
	}
	return &short
}

func toolsSize(tools *event.SetTools) int {
	if tools == nil {
		return 0
	}
	return jsonSize(tools)
}

const maxStateArguments = 1 << 10 // bytes of a tool call

// abridged omits settings, the answer of a repair, the end of long arguments, and the arguments after the 16th call.
func abridged(request *reducer.Request) *reducer.Request {
	if request == nil {
		return nil
	}
	short := *request
	short.Settings = nil
	if request.Repair != nil {
		short.Repair = &reducer.Repair{Problem: request.Repair.Problem}
	}
	short.Calls = slices.Clone(request.Calls)
	for i := range short.Calls {
		call := &short.Calls[i]
		switch {
		case i >= 16:
			call.Arguments = nil
		case len(call.Arguments) > maxStateArguments:
			beginning := strings.ToValidUTF8(string(call.Arguments[:maxStateArguments]), "")
			call.Arguments, _ = json.Marshal(beginning + "…")
		}
	}
	return &short
}

// MaxStateBytes bounds the messages, settings and tool calls in a [State], so that the result is not
// stored in the blob store, and clients without a store can read it.
const MaxStateBytes = 48 << 10

func withoutData(attachments []reducer.Attachment) []reducer.Attachment {
	var out []reducer.Attachment
	for _, a := range attachments {
		a.Source.Data = nil
		if a.Source.Type == event.SourceURL {
			a.Source.URL = a.Source.String() // truncates a data URL
		}
		out = append(out, a)
	}
	return out
}
