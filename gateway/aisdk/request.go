package aisdk

import (
	"cmp"
	"encoding/json"
	"errors"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
	"github.com/seed-9ed7edd4/chronicle/gateway/thread"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// request is the body that the SDK's transport sends.
type request struct {
	ID        string            `json:"id"` // of the chat: the name of the context
	Trigger   string            `json:"trigger"`
	MessageID string            `json:"messageId"` // of the message to edit, to regenerate, or to continue; "": the last one
	Messages  []json.RawMessage `json:"messages"`  // of which only one counts
	Message   json.RawMessage   `json:"message"`   // instead of messages: the input

	input message
}

const (
	triggerSubmit     = "submit-message"
	triggerRegenerate = "regenerate-message"
)

// decode rejects fields that it does not know, except in messages that are not the input.
func decode(body []byte) (r request, err error) {
	if err = gateway.DecodeStrictly(body, &r); err != nil {
		return r, gateway.BadRequest("", "the body is invalid: %s (want id, messages or message, trigger and messageId, as the SDK sends them)", plainError(err))
	}
	if r.Trigger = cmp.Or(r.Trigger, triggerSubmit); r.Trigger != triggerSubmit && r.Trigger != triggerRegenerate {
		return r, gateway.BadRequest("trigger", "trigger: %q is not supported (want %s or %s)", r.Trigger, triggerSubmit, triggerRegenerate)
	}
	if len(r.Message) > 0 && string(r.Message) != "null" {
		if len(r.Messages) > 0 {
			return r, gateway.BadRequest("message", "message and messages exclude each other")
		}
		r.Messages = []json.RawMessage{r.Message}
	}
	if len(r.Messages) == 0 {
		return r, gateway.BadRequest("messages", "messages: empty (want the input as the last message, or as message)")
	}
	input := r.Messages[len(r.Messages)-1]
	for _, m := range r.Messages {
		var named struct {
			ID string `json:"id"`
		}
		if json.Unmarshal(m, &named) == nil && named.ID == r.MessageID && r.MessageID != "" {
			input = m
		}
	}
	if err := json.Unmarshal(input, &r.input); err != nil {
		return r, gateway.BadRequest("messages", "messages: the input is no UI message: %s", plainError(err))
	}
	if m := r.input; m.ID == "" || len(m.ID) > thread.MaxMessageID || m.Role != roleUser && m.Role != roleAssistant {
		return r, gateway.BadRequest("messages", "messages: the input has the id %q and the role %q (want an id of 1 to %d bytes and the role user or assistant; "+
			"the system prompt is a SystemPromptEvent)", event.Redact(m.ID, 0), m.Role, thread.MaxMessageID)
	}
	return r, nil
}

// plainError describes an error of encoding/json without types of Go.
func plainError(err error) string {
	var mismatch *json.UnmarshalTypeError
	if errors.As(err, &mismatch) {
		return cmp.Or(mismatch.Field, "the value") + " has the wrong type, " + mismatch.Value
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}

// events returns the events of a user message. Their client event ids derive from that of the message, so that a request
// can be repeated, and the message keeps its id.
func (m message) events(s *session) (events []event.Event, err error) {
	var texts []string
	for i, p := range m.Parts {
		switch p.Type {
		case typeText:
			texts = append(texts, p.Text)
		case typeFile:
			file, err := p.file(s)
			if err != nil {
				return nil, err
			}
			e := event.New(file)
			e.ClientEventID = thread.FileID(m.ID, len(events)+1)
			events = append(events, e)
		default:
			return nil, gateway.BadRequest("messages", "messages: part %d of the input has the type %q (want %s or %s)", i+1, event.Redact(p.Type, 0), typeText, typeFile)
		}
	}
	e := event.New(event.UserMessage{Content: strings.Join(texts, "\n")})
	e.ClientEventID = m.ID
	if m.Metadata != nil {
		data, _ := json.Marshal(m.Metadata) // it was JSON
		e.Extra = map[string]json.RawMessage{extraMetadata: data}
	}
	return append(events, e), nil
}

// file returns the file of a part: of a data URL, a URL, or that of a [thread.File], in a message that is edited.
func (p part) file(s *session) (event.FileAttachment, error) {
	rest, isStored := strings.CutPrefix(p.URL, s.exchange.PublicPath()+"/contexts/")
	if !isStored {
		return thread.Attach(p.Filename, p.MediaType, p.URL)
	}
	parts := strings.Split(rest, "/") // NAME/events/ID/attachment
	if len(parts) != 4 {
		return event.FileAttachment{}, gateway.BadRequest("messages", "messages: the file %q is not one of the chat", event.Redact(p.URL, 0))
	}
	stored, err := s.context.Attachment(parts[2])
	return event.FileAttachment{
		MediaType: p.MediaType, FileName: p.Filename, Source: event.Source{Type: event.SourceBlob, Data: stored.Source.Data},
	}, err
}

// answers returns what a page decided and executed, of the calls that wait.
func (m message) answers(calls []reducer.Call) (events []event.Event) {
	for _, call := range calls {
		for _, p := range m.Parts {
			if p.ToolCallID != call.ID {
				continue
			}
			switch {
			case call.State == reducer.CallApproval && p.Approval != nil && p.Approval.Approved != nil:
				decision := event.Deny
				if *p.Approval.Approved {
					decision = event.Approve
				}
				events = append(events, event.New(event.ApprovalDecided{ToolCallID: call.ID, Decision: decision, Reason: p.Approval.Reason}))
			case call.State == reducer.CallClient && p.State == stateError:
				events = append(events, event.New(event.ToolResult{ToolCallID: call.ID, Error: text(p.ErrorText), IsError: true}))
			case call.State == reducer.CallClient && p.State == stateOutput:
				// A result is not null.
				value := cmp.Or(string(event.ToolValue(p.Output)), `"null"`)
				events = append(events, event.New(event.ToolResult{ToolCallID: call.ID, Value: json.RawMessage(value)}))
			}
		}
	}
	return events
}
