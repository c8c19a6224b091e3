package gateway

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// Snapshot is what a log shows.
type Snapshot struct {
	Last    string      // id of the newest event; "": the context does not exist
	Status  wire.Status // "": the context does not exist
	Request string      // id of the running request; "": none
	// Before is the event before the running request, so that [Handle.Follow] from there shows it from its beginning; "":
	// none runs, or the log begins with it.
	Before string
	// ContinuedIn is the context that continues this one for clients that keep its name, see [Handle.ContinueIn]; "": none.
	ContinuedIn string
	Setup       Setup
}

// Setup is what requests of a context are made with.
type Setup struct {
	Provider event.SetProviderConfig // zero: the default of the worker
	System   string
	Tools    event.SetTools
	Settings event.RequestSettings
	// Turn has the settings of the newest event that requests an answer, which override the others during its turn.
	Turn event.RequestSettings

	continuedIn string
}

func (s *Setup) apply(e event.Event) {
	turn := func(settings *event.RequestSettings) {
		if s.Turn = (event.RequestSettings{}); settings != nil {
			s.Turn = *settings
		}
	}
	switch body := e.Body.(type) {
	case event.SetProviderConfig:
		switch {
		case body.AsFallback:
		case body.UseDefault:
			s.Provider = event.SetProviderConfig{}
		default:
			s.Provider = body
		}
	case event.SystemPrompt:
		s.System = body.Content
	case event.SetTools:
		s.Tools = body
	case event.SetRequestSettings:
		s.Settings = event.RequestSettings(body)
	case event.UserMessage:
		if body.Triggers() {
			turn(body.Settings)
		}
	case event.AnswerRequested:
		turn(body.Settings)
	case event.Note:
		var to continuation
		if json.Unmarshal(e.Extra[extraContinuation], &to) == nil && to.From == e.ContextName {
			s.continuedIn = to.In
		}
	}
}

// With returns the events after which requests have another system prompt and other tools; nil: they keep those of s.
func (s Setup) With(system *string, tools *event.SetTools) (events []event.Event, err error) {
	if system != nil && *system != s.System {
		events = append(events, event.New(event.SystemPrompt{Content: *system}))
	}
	if tools == nil {
		return events, nil
	}
	before, _ := json.Marshal(s.Tools) // decoded from JSON
	after, err := json.Marshal(tools)
	if err != nil {
		return nil, BadRequest("tools", "tools are invalid: %s", event.Redact(err.Error(), 200))
	}
	if !bytes.Equal(before, after) {
		events = append(events, event.New(*tools))
	}
	return events, nil
}

// continuation is in the extra field of a note. A fork inherits the notes of its origin, which are about another context.
type continuation struct {
	From string `json:"from"`
	In   string `json:"in"`
}

const extraContinuation = "continuation"

// ContinueIn notes in the log that another context continues this one for clients that keep its name, such as a branch
// without a message that was edited. The newest note counts, see [Snapshot].
func (h *Handle) ContinueIn(name string) error {
	note := event.New(event.Note{Kind: event.NoteSystem, Content: "Continued in " + name})
	note.Extra = map[string]json.RawMessage{extraContinuation: encode(continuation{h.Name(), name})}
	_, err := h.Send(note)
	return err
}

// Snapshot waits until the log has been read. A [Handle.Follow] from its Last misses nothing.
func (h *Handle) Snapshot() (Snapshot, error) {
	v, err := h.view("")
	if err != nil {
		return Snapshot{}, err
	}
	ctx, cancel := context.WithTimeout(h.exchange.Request.Context(), answerTimeout)
	defer cancel()
	return awaitRead(ctx, v.room.snapshot)
}

// snapshot returns a channel until the log has been read.
func (r *room) snapshot() (s Snapshot, changed <-chan struct{}, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.err != nil:
		return s, nil, r.err
	case !r.isLoaded:
		return s, r.nextChange(), nil
	case r.last == 0:
		return s, nil, nil
	}
	s = Snapshot{
		Last: event.FormatID(r.name, r.last), Status: cmp.Or(r.status.status, wire.StatusIdle), Request: r.status.request,
		ContinuedIn: r.setup.continuedIn, Setup: r.setup,
	}
	if s.Request != "" {
		s.Before = event.IDBefore(r.name, r.status.began)
	}
	return s, nil, nil
}
