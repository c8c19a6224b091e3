package agui

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
	"github.com/seed-9ed7edd4/chronicle/gateway/thread"
)

// runInput is a RunAgentInput of AG-UI.
type runInput struct {
	ThreadID        string          `json:"threadId"`
	RunID           string          `json:"runId"`
	ProtocolVersion string          `json:"protocolVersion"`
	ParentRunID     string          `json:"parentRunId"`
	State           json.RawMessage `json:"state"`
	Messages        []message       `json:"messages"`
	Tools           []struct {
		Name        string       `json:"name"`
		Description string       `json:"description"`
		Parameters  event.Object `json:"parameters"`
	} `json:"tools"`
	Context []struct {
		Description string `json:"description"`
		Value       string `json:"value"`
	} `json:"context"`
	ForwardedProps json.RawMessage `json:"forwardedProps"`
	Resume         []struct {
		InterruptID string   `json:"interruptId"`
		Status      string   `json:"status"`
		Payload     decision `json:"payload"`
	} `json:"resume"`
}

const protocolVersion = "1.0"

// decision is the payload of a resumed interrupt.
type decision struct {
	Approved  *bool           `json:"approved"`
	Reason    string          `json:"reason"`
	Arguments json.RawMessage `json:"arguments"`
}

// UnmarshalJSON rejects unknown fields: misspelt arguments would run the call with the original ones.
func (d *decision) UnmarshalJSON(data []byte) error {
	type fields decision
	return gateway.DecodeStrictly(data, (*fields)(d))
}

var decisionSchema = json.RawMessage(`{"type":"object","properties":{` +
	`"approved":{"type":"boolean"},` +
	`"reason":{"type":"string","description":"Why the call is not allowed"},` +
	`"arguments":{"type":"object","description":"Replaces the arguments of an approved call"}},"required":["approved"]}`)

func decode(body []byte) (in runInput, err error) {
	err = json.Unmarshal(body, &in)
	var mismatch *json.UnmarshalTypeError
	switch {
	case errors.As(err, &mismatch):
		return in, gateway.BadRequest(mismatch.Field, "%s has the wrong type: %s", cmp.Or(mismatch.Field, "the body"), mismatch.Value)
	case err != nil:
		return in, gateway.BadRequest("", "the body is no RunAgentInput: %s", event.Redact(err.Error(), 200))
	}
	if name := unknownField(body); name != "" {
		return in, gateway.BadRequest(name, "%s is no field of a RunAgentInput (leave it out, or put it into forwardedProps)", name)
	}
	switch major, _, _ := strings.Cut(in.ProtocolVersion, "."); {
	case major != "" && major != "1":
		return in, gateway.BadRequest("protocolVersion", "protocolVersion %q is not supported (want %s)", event.Redact(in.ProtocolVersion, 40), protocolVersion)
	case in.ThreadID == "":
		return in, gateway.BadRequest("threadId", "threadId is missing (want the name of a context)")
	case in.RunID == "":
		return in, gateway.BadRequest("runId", "runId is missing")
	case in.ParentRunID != "":
		return in, gateway.BadRequest("parentRunId", "runs have no parents here (leave it out; POST /contexts/%s/fork forks a context)", in.ThreadID)
	case !isEmpty(in.State):
		return in, gateway.BadRequest("state", "contexts have no state to set (send an empty one)")
	}
	for i, m := range in.Messages {
		switch {
		case m.ID == "":
			return in, gateway.BadRequest("messages", "message %d has no id", i)
		case m.Role == roleUser && !m.hasContent():
			return in, gateway.BadRequest("messages", "the content of message %s is neither a text nor an array of parts", event.Redact(m.ID, 80))
		}
	}
	return in, nil
}

// unknownField returns the name of a field that a run does not have; "": there is none.
func unknownField(body []byte) string {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(body, &fields) // it was decoded before
	for _, field := range reflect.VisibleFields(reflect.TypeFor[runInput]()) {
		delete(fields, field.Tag.Get("json"))
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if string(fields[name]) != "null" {
			return event.Redact(name, 80)
		}
	}
	return ""
}

func isEmpty(value json.RawMessage) bool {
	return slices.Contains([]string{"", "null", "{}", "[]", `""`}, string(bytes.TrimSpace(value)))
}

// compare returns the messages of a client that the context lacks, and whether the client lacks none that the context has, and
// has no other ones. The error says what contradicts the context.
func compare(t *thread.Thread, has, messages []message) (added []message, isSame bool, err error) {
	of, seen := map[string]message{}, map[string]bool{}
	for _, m := range has {
		of[m.key()] = m
	}
	isSame = true
	for i, m := range messages {
		has, isKnown := of[m.key()]
		seen[m.key()] = isKnown
		switch {
		case m.Role == roleSystem || m.Role == roleDeveloper || m.Role == roleActivity:
			delete(seen, m.key())
		case isKnown && m.Role == roleUser:
			if has.Role != m.Role || has.text() != m.text() {
				return nil, false, conflict("message %s differs from that of the context (send a message with another id, or fork the context to edit it)", m.ID)
			}
			if len(added) > 0 {
				return nil, false, conflict("message %s precedes message %s, which the context has already (add it at the end)", added[0].ID, m.ID)
			}
		case isKnown:
			isSame = isSame && (m.Role == roleTool || has.text() == m.text() && len(has.ToolCalls) == len(m.ToolCalls))
		case m.Role == roleUser:
			added = append(added, m)
		case m.Role == roleTool:
			if c := t.Call(m.ToolCallID); c == nil || !c.IsOpen() {
				return nil, false, conflict("message %s: call %s does not wait for a result", m.ID, m.ToolCallID)
			}
			added = append(added, m)
		case m.Role == roleAssistant || m.Role == roleReasoning: // of a run that is gone, or of an answer that runs
			isSame = false
		default:
			return nil, false, gateway.BadRequest("messages", "message %d has the role %q", i, event.Redact(string(m.Role), 40))
		}
	}
	for key := range of {
		isSame = isSame && seen[key]
	}
	return added, isSame, nil
}

func conflict(format string, args ...any) error {
	p := gateway.BadRequest("messages", format, args...)
	p.Status, p.Title = 409, "The messages contradict the context"
	return p
}

// events returns the input for a context.
func (in *runInput) events(t *thread.Thread, setup gateway.Setup, added []message) ([]event.Event, error) {
	var system *string
	if text := in.system(); text != "" {
		system = &text
	}
	events, err := setup.With(system, in.tools(setup.Tools))
	if err != nil {
		return nil, err
	}
	for _, r := range in.Resume {
		d := event.ApprovalDecided{ToolCallID: r.InterruptID, Decision: event.Deny, Reason: r.Payload.Reason}
		switch {
		case r.Status == "cancelled":
			d.Reason = cmp.Or(d.Reason, "cancelled")
		case r.Status != "resolved" || r.Payload.Approved == nil:
			return nil, gateway.BadRequest("resume", `interrupt %s: want the status "cancelled", or "resolved" with a payload like {"approved":true}`, event.Redact(r.InterruptID, 80))
		case *r.Payload.Approved:
			d.Decision, d.Parameters = event.Approve, r.Payload.Arguments
		}
		switch c := t.Call(r.InterruptID); {
		case c == nil || c.Approval == nil:
			return nil, conflict("resume: call %s waits for no approval", event.Redact(r.InterruptID, 80))
		case c.IsAsked(): // else another client decided first
			events = append(events, event.New(d))
		}
	}
	for _, m := range added {
		if len(m.ID) > thread.MaxMessageID {
			return nil, gateway.BadRequest("messages", "the id of a message has %d bytes (at most %d)", len(m.ID), thread.MaxMessageID)
		}
		ofMessage, err := in.eventsOf(m)
		if err != nil {
			return nil, err
		}
		events = append(events, ofMessage...)
	}
	return events, nil
}

// system returns the instructions of the client.
func (in *runInput) system() string {
	var texts []string
	for _, m := range in.Messages {
		if m.Role == roleSystem || m.Role == roleDeveloper {
			texts = append(texts, m.text())
		}
	}
	for _, c := range in.Context {
		texts = append(texts, c.Description+":\n"+c.Value)
	}
	return strings.Join(texts, "\n\n")
}

// tools returns the tools of a context with those of the client; nil: the client has none.
func (in *runInput) tools(has event.SetTools) *event.SetTools {
	if len(in.Tools) == 0 {
		return nil
	}
	want := has
	want.Tools = slices.DeleteFunc(slices.Clone(has.Tools), event.Tool.IsClient)
	for _, t := range in.Tools {
		want.Tools = append(want.Tools, event.Tool{Name: t.Name, Description: t.Description, Parameters: t.Parameters})
	}
	return &want
}

// eventsOf returns the events of a message. Their client event id is that of the message, so a repeated run sends none again.
func (in *runInput) eventsOf(m message) ([]event.Event, error) {
	if m.Role == roleTool {
		result := event.ToolResult{ToolCallID: m.ToolCallID, Value: quoted(m.text())}
		if m.Error != "" {
			result = event.ToolResult{ToolCallID: m.ToolCallID, IsError: true, Error: quoted(m.Error)}
		}
		e := event.New(result)
		e.ClientEventID = m.ID
		return []event.Event{e}, nil
	}
	var events []event.Event
	var parts []part
	_ = json.Unmarshal(m.Content, &parts) // a text has none
	for _, p := range parts {
		if p.Type == "text" {
			continue
		}
		file, err := attachment(p)
		if err != nil {
			return nil, err
		}
		e := event.New(file)
		e.ClientEventID = thread.FileID(m.ID, len(events)+1)
		events = append(events, e)
	}
	e := event.New(event.UserMessage{Content: m.text()})
	e.ClientEventID = m.ID
	if !isEmpty(in.ForwardedProps) {
		e.Extra = map[string]json.RawMessage{"forwardedProps": in.ForwardedProps}
	}
	return append(events, e), nil
}

func attachment(p part) (file event.FileAttachment, err error) {
	if p.Source == nil {
		return file, gateway.BadRequest("messages", "a part of a message has neither a text nor a source")
	}
	switch p.Source.Type {
	case "url":
		file, err = thread.Attach("", p.Source.MIMEType, p.Source.Value)
	case "data":
		file, err = thread.Attach("", p.Source.MIMEType, "data:;base64,"+p.Source.Value)
	default:
		err = gateway.BadRequest("messages", "a source of the type %q is not supported (data or url)", event.Redact(p.Source.Type, 40))
	}
	file.MediaType = cmp.Or(file.MediaType, map[string]string{"image": "image/*"}[p.Type], "application/octet-stream")
	return file, err
}
