package openai

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"reflect"
	"slices"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
	"github.com/seed-9ed7edd4/chronicle/gateway/thread"
)

// ask is a request for an answer, and where it goes.
type ask struct {
	*request
	x      *gateway.Exchange
	body   []byte
	h      *gateway.Handle
	isOwn  bool // the context was made for the request
	isSent bool // the context has the input
	isFork bool
	items  map[string][]item // those of contexts, for [ask.find]
}

// locate finds the context of a request: a conversation, that of the previous response, a fork of it, or a new one.
func (a *ask) locate() (err error) {
	switch {
	case a.Conversation != "":
		a.h, err = a.x.Open(string(a.Conversation))
		return err
	case a.Previous == nil:
		a.isOwn = true
		name, err := newName(a.x, ownPrefix)
		if err == nil {
			a.h, err = a.x.Open(name)
		}
		return err
	}
	t, err := load(a.x, "previous_response_id", *a.Previous)
	if err != nil {
		return err
	}
	key, err := a.x.IdempotencyKey()
	if err != nil {
		return err
	}
	end, isNewest, err := t.ending(event.KeyedIDs(key, a.body)(0))
	if err != nil {
		return err
	}
	if a.h = t.h; isNewest {
		return nil
	}
	a.isFork = true
	return a.fork(t.h, end)
}

// ending reads the log, and returns the event with which the response ended, and whether nothing that belongs to the
// conversation follows it, or the input of an earlier request with the same first id.
func (t *turn) ending(repeated string) (end string, isNewest bool, err error) {
	isNewest = true
	for e, err := range t.h.Scan(t.from) {
		if err != nil {
			return "", false, err
		}
		if !t.isDone {
			if t.add(gateway.Item{Event: e}); t.thread.Last == event.Counter(e.ID) {
				end = e.ID
				continue
			}
		}
		if e.ClientEventID == repeated {
			return end, true, nil
		}
		switch e.Body.(type) {
		case event.UserMessage, event.AnswerRequested, event.AssistantMessage, event.ToolResult, event.ApprovalDecided:
			isNewest = false
		}
	}
	return end, isNewest, nil
}

// fork continues a context at an event. A repeated request with an Idempotency-Key finds the fork of the first one.
func (a *ask) fork(from *gateway.Handle, at string) error {
	key, err := a.x.IdempotencyKey()
	if err != nil {
		return err
	}
	name := ""
	if key != "" {
		if name, err = newName(a.x, ownPrefix); err != nil {
			return err
		}
	}
	created, err := from.Branch(client.BranchOptions{Name: name, At: at})
	if errors.Is(err, client.ErrExists) && key != "" {
		created.ContextName, err = name, nil
	}
	if err == nil {
		a.h, err = a.x.Open(created.ContextName)
	}
	return err
}

// newName returns the name of a context for a request, which an Idempotency-Key decides.
func newName(x *gateway.Exchange, prefix string) (string, error) {
	key, err := x.IdempotencyKey()
	if key == "" || err != nil {
		return prefix + strings.ToLower(rand.Text()), err
	}
	sum := sha256.Sum256([]byte(key))
	return prefix + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:20])), nil
}

// send sends the input, and returns the turn that it begins.
func (a *ask) send(in *script) (*turn, error) {
	before, err := a.h.Snapshot()
	if err != nil {
		return nil, err
	}
	settings, err := a.settings()
	if err != nil {
		return nil, err
	}
	events, err := a.setup(before.Setup, in.instructions(a.Instructions))
	if err != nil {
		return nil, err
	}
	key, err := a.x.IdempotencyKey()
	if err != nil {
		return nil, err
	}
	id := event.KeyedIDs(key, a.body)
	foreign := in.foreignResult()
	continues := before.Request != ""
	if key != "" && !continues && in.endsWithResult() && foreign != "" {
		if continues, err = a.isRecorded(id(len(in.events) - 1)); err != nil {
			return nil, err
		}
	}
	if a.isOwn && foreign != "" {
		return nil, gateway.BadRequest(in.field, "no tool call %q is in the input (a result needs its call, or the conversation that has it)", event.Redact(foreign, 100))
	}
	if id := in.decidedCall(); a.isOwn && id != "" {
		return nil, gateway.BadRequest(in.field, "approval_request_id %q is unknown: the input has no conversation", event.Redact(approvalPrefix+id, 200))
	}
	if err := in.finish(settings, continues && !a.isFork && foreign != ""); err != nil {
		return nil, err
	}
	if in.endsWithResult() && continues && changes(before.Setup.Turn, settings) {
		return nil, gateway.BadRequest("", "settings that differ from those of the turn are not supported with results of functions")
	}
	if key != "" {
		// A repeated request needs no setup, but must give its messages the same ids.
		for i := range in.events {
			in.events[i].ClientEventID = id(i)
		}
		for i := range events {
			events[i].ClientEventID = id(event.MaxInputEvents + slices.Index(setupTags, events[i].Tag()))
		}
	}
	events = append(events, in.events...)
	offered := before.Setup.Tools
	for _, e := range events {
		if body, ok := e.Body.(event.SetTools); ok {
			offered = body
		}
	}
	if c := settings.ToolChoice; c != nil && len(offered.Tools) == 0 && c.Mode != "auto" && c.Mode != event.ToolChoiceNone {
		return nil, gateway.BadRequest("tool_choice", "tool_choice: neither the request nor the context has tools (declare them, or leave it out)")
	}
	r := record{Functions: thread.Clients(offered), Metadata: a.Metadata, Background: a.Background}
	if a.Previous != nil {
		r.Previous = *a.Previous
	}
	r.attach(events)
	sent, err := a.h.Send(events...)
	counter := 0
	if err == nil {
		a.x.Header().Set("X-Should-Retry", "false") // the input is stored; clients of OpenAI send it again otherwise
		counter, err = recorded(a.h, sent)
		a.isSent = !errors.Is(err, client.ErrRefused)
	}
	if err != nil {
		if a.isOwn && before.Last == "" {
			discardRejected(a.x, a.h, err)
		}
		return nil, named(err, in.field, a.more)
	}
	t := newTurn(a.h.Name(), counter, r)
	t.begins(a.h, events[len(events)-1].Body)
	if t.from == "" && event.Counter(before.Before) < counter {
		t.from = before.Before
	}
	a.echo(&t.response)
	return t, nil
}

// isRecorded reports whether an earlier request has sent an event.
func (a *ask) isRecorded(clientEventID string) (bool, error) {
	for e, err := range a.h.Scan("") {
		switch {
		case errors.Is(err, client.ErrNoContext):
			return false, nil
		case err != nil:
			return false, err
		case e.ClientEventID == clientEventID:
			return true, nil
		}
	}
	return false, nil
}

// changes reports whether settings change those of a turn. The choice of a tool applies to the first step of a turn only.
func changes(turn, settings event.RequestSettings) bool {
	turn.ToolChoice, settings.ToolChoice = nil, nil
	return !reflect.DeepEqual(turn.Override(settings), turn)
}

// recorded returns the counter of the newest event of an input, and waits until a worker has recorded it. The log may have
// it from an earlier request.
func recorded(h *gateway.Handle, sent client.Receipt) (int, error) {
	if n := len(sent.EventIDs); n > 0 {
		return event.Counter(sent.EventIDs[n-1]), nil
	}
	newest := sent.ClientEventIDs[len(sent.ClientEventIDs)-1]
	for item, err := range h.Follow("") {
		if err != nil {
			return 0, err
		}
		body, isRejected := item.Event.Body.(event.InputRejected)
		switch {
		case isRejected && slices.Contains(sent.ClientEventIDs, item.Event.ClientEventID):
			return 0, client.Refused(body.Reason)
		case item.Event.ClientEventID == newest:
			return event.Counter(item.Event.ID), nil
		}
	}
	return 0, context.Canceled
}

// discard closes a context that was made for the request, and deletes it if it is not to be stored. Nobody else knows it,
// unless it rejected the input: then another request has used the Idempotency-Key.
func (a *ask) discard() {
	if !a.isSent {
		return
	}
	a.x.Report("close context", a.h.Close("completed"))
	if a.Store != nil && !*a.Store {
		a.x.Report("delete context", a.h.Delete())
	}
}

// discardRejected deletes a new context that rejected its first input: nobody knows it, unless another request has used the
// Idempotency-Key.
func discardRejected(x *gateway.Exchange, h *gateway.Handle, err error) {
	if errors.Is(err, client.ErrRefused) && !errors.Is(err, client.ErrKeyReused) {
		x.Report("delete context", h.Delete())
	}
}
