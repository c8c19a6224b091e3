package openai

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
	"github.com/seed-9ed7edd4/chronicle/gateway/thread"
)

func newTurn(name string, trigger int, r record) *turn {
	t := &turn{trigger: trigger, thread: thread.Thread{Clients: r.Functions}, after: -1}
	t.response = response{
		ID: formatID(responsePrefix, name, trigger), Object: "response", name: name, Status: "", Output: []item{}, Tools: []any{},
		ParallelToolCalls: true, Store: true, ToolChoice: "auto", Truncation: "disabled", Conversation: &reference{name},
		Text: textConfig{Format: format{Type: event.FormatText}}, Metadata: r.Metadata, Background: r.Background,
	}
	if r.Metadata == nil {
		t.response.Metadata = map[string]string{}
	}
	if r.Previous != "" {
		t.response.Previous = &r.Previous
	}
	return t
}

// echo repeats the fields of the request.
func (a *ask) echo(r *response) {
	r.Instructions, r.MaxOutputTokens, r.Temperature, r.TopP = a.Instructions, a.MaxOutputTokens, a.Temperature, a.TopP
	if r.Model == "" {
		r.Model = a.Model
	}
	if a.Reasoning != nil {
		r.Reasoning = *a.Reasoning
	}
	if a.Text != nil && a.Text.Format.Type != "" {
		r.Text = *a.Text
	}
	if a.ParallelToolCalls != nil {
		r.ParallelToolCalls = *a.ParallelToolCalls
	}
	if len(a.ToolChoice) > 0 {
		r.ToolChoice = a.ToolChoice
	}
	if a.Store != nil {
		r.Store = *a.Store
	}
	for _, t := range a.Tools {
		if t.Type == "function" {
			r.Tools = append(r.Tools, functionTool(t.Name, t.Description, t.Parameters))
		}
	}
}

func functionTool(name, description string, parameters event.Object) map[string]any {
	return map[string]any{"type": "function", "name": name, "description": description, "parameters": json.RawMessage(parameters), "strict": nil}
}

// begins sets where a reader begins. One of a turn that continues a request needs all before it, which has the calls.
func (t *turn) begins(h *gateway.Handle, trigger event.Body) {
	if t.h = h; event.RequiresAnswer(trigger) {
		t.from = event.IDBefore(h.Name(), t.trigger)
	}
}

// load finds a response by its id.
func load(x *gateway.Exchange, field, id string) (*turn, error) {
	unknown := &gateway.Problem{
		Type: "urn:chronicle:problem:not-found", Status: http.StatusNotFound, Title: "Response not found", Detail: event.Redact(id, 200), Field: field,
	}
	name, counter, ok := parseID(responsePrefix, id)
	if !ok {
		return nil, unknown
	}
	h, err := x.Open(name)
	if err != nil {
		return nil, err
	}
	var r record
	isRecorded, isTrigger := false, false
	var trigger event.Body
	for e, err := range h.Scan(event.IDBefore(name, counter-1)) {
		if errors.Is(err, client.ErrNoContext) || errors.Is(err, client.ErrNoEvent) {
			return nil, unknown
		}
		if err != nil {
			return nil, err
		}
		n := event.Counter(e.ID)
		if n > counter {
			break
		}
		_, isResult := e.Body.(event.ToolResult)
		_, isDecision := e.Body.(event.ApprovalDecided)
		trigger = e.Body
		isTrigger = n == counter && (isResult || isDecision || event.RequiresAnswer(e.Body))
		if of, ok := recordOf(e); ok {
			r, isRecorded = of, true
		}
	}
	if !isTrigger {
		return nil, unknown
	}
	if !isRecorded {
		now, err := h.Snapshot()
		if err != nil {
			return nil, err
		}
		r.Functions = thread.Clients(now.Setup.Tools)
	}
	t := newTurn(name, counter, r)
	for _, name := range r.Functions {
		t.response.Tools = append(t.response.Tools, functionTool(name, "", nil))
	}
	t.begins(h, trigger)
	return t, nil
}

// read folds the log.
func (t *turn) read() error {
	for e, err := range t.h.Events(t.from) {
		if err != nil {
			return err
		}
		if t.add(gateway.Item{Event: e}); t.isDone {
			return nil
		}
	}
	t.offers = thread.Offers(t.h)
	t.pause()
	return nil
}

// live makes the turn one of a reader that waits for events. If the log has more already, that shows what waits.
func (t *turn) live() {
	offered := thread.Offers(t.h)
	t.offers = func(calls []string) []string {
		if now, err := t.h.Snapshot(); err == nil && event.Counter(now.Last) > t.thread.Last {
			return nil
		}
		return offered(calls)
	}
}

// follow folds the log until the response has ended.
func (t *turn) follow() error {
	t.live()
	for item, err := range t.h.Follow(t.from) {
		if err != nil {
			return err
		}
		if t.add(item); t.isDone {
			return nil
		}
	}
	return context.Canceled
}

func (t *turn) stream(x *gateway.Exchange) error {
	t.live()
	var frames []byte
	t.emit = func(kind string, fields map[string]any) {
		data, _ := json.Marshal(fields) // texts, numbers and items always encode
		frames = append(frames, gateway.Frame("", kind, data)...)
	}
	return x.Stream(t.h, t.from, gateway.Stream{
		Next: func(in gateway.Item) ([]byte, error) {
			frames = nil
			if t.add(in); t.isDone {
				return frames, io.EOF
			}
			return frames, nil
		},
		Fail: func(p *gateway.Problem) []byte {
			data, _ := json.Marshal(map[string]any{
				"type": "error", "code": code(p), "message": p.Error(), "param": nil, "sequence_number": t.number(t.thread.Last, t.sub),
			})
			return gateway.Frame("", "error", data)
		},
	})
}
