package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
)

// BranchOptions describe a branch of a context. One of At, Before and Regenerate is set, to the id of an event of the
// context.
type BranchOptions struct {
	Name   string // of the new context; "": generated from that of the root, like demo-2
	At     string // the newest event that both contexts share
	Before string // the first event that they do not share, such as a message to edit
	// Regenerate is an answer. The branch begins before its attempt, with the results of tools that the model had, and
	// requests another answer.
	Regenerate string
	// Events are sent to the new context, such as another wording of a message, or another model. Nil: none.
	Events []event.Event
	// Key identifies the branch: Branch with the same key and the same other options returns the same branch, and completes
	// it if it was interrupted. With other options, the error is ErrKeyReused. Empty: each Branch creates another one.
	Key   string
	Owner string // of the new context, as in [event.SetDetails]; "": none
	// Admit is called before a context is created, and not for a branch that exists already. Branch fails with its error.
	// Nil: always admitted.
	Admit func() error `json:"-"`
}

// Branched is a new context that continues another one.
type Branched struct {
	ContextName string `json:"contextName" schema:"is=ContextName"` // of the new context
	ForkedFrom  string `json:"forkedFrom" schema:"is=EventID"`      // the newest event that it shares with its origin
	// Of the events that were sent, except for the owner; absent: none were.
	Receipt *Receipt `json:"receipt,omitempty"`
}

// Branch forks the context, as [Context.Fork] does, and sends events to the new context. A branch before the first
// message of a fork is a fork of its origin: settings in between are sent again, and the alternatives to a message are
// siblings, however they were made.
//
// The error is that of [Context.Fork] or [Context.Send], ErrKeyReused, or a *event.FieldError. The result has the name of
// the new context if it was registered, also with an error. The next input starts its session if Branch did not.
func (c *Context) Branch(ctx context.Context, o BranchOptions) (Branched, error) {
	if err := o.validate(); err != nil {
		return Branched{}, err
	}
	if o.Admit == nil {
		o.Admit = func() error { return nil }
	}
	if c.client.options.Archive == nil {
		return Branched{}, fmt.Errorf("fork context %s: %w", c.Name(), errStoreRequired)
	}
	if err := c.checkStore(ctx, "fork"); err != nil {
		return Branched{}, err
	}
	at, ask, err := c.point(ctx, o)
	if err != nil {
		return Branched{}, err
	}
	origin, settings, err := c.origin(ctx, at)
	if err != nil {
		return Branched{}, err
	}
	fork, err := c.createFork(ctx, o, origin)
	if fork == nil {
		return Branched{}, err
	}
	created := Branched{ContextName: fork.Name(), ForkedFrom: event.FormatID(origin.ContextName, origin.At)}
	events := slices.Concat(settings, o.Events, ask)
	count := len(events)
	if o.Owner != "" {
		events = append(events, event.New(event.SetDetails{Owner: o.Owner}))
	}
	if err != nil || len(events) == 0 {
		return created, err
	}
	if o.Key != "" {
		id := o.ids()
		for i := range events {
			if events[i].ClientEventID == "" {
				events[i].ClientEventID = id(i)
			}
		}
	}
	sent, err := fork.Send(ctx, events...)
	if sent = sent.First(count); count > 0 {
		created.Receipt = &sent
	}
	return created, err
}

func (o BranchOptions) validate() error {
	points := 0
	for _, id := range []string{o.At, o.Before, o.Regenerate} {
		if id != "" {
			points++
		}
	}
	if points != 1 {
		return &event.FieldError{Field: "at", Problem: "want one of at, before and regenerate"}
	}
	for _, e := range o.Events {
		if err := Validate(e); err != nil {
			return err
		}
	}
	return nil
}

// ids returns the ClientEventIDs of the events that are sent for the key, by their index.
func (o BranchOptions) ids() func(index int) string {
	data, _ := json.Marshal(o) // valid events always encode
	return event.KeyedIDs("fork "+o.Key, data)
}

// point returns the counter of the newest shared event, and what requests another answer.
func (c *Context) point(ctx context.Context, o BranchOptions) (at int, ask []event.Event, err error) {
	switch {
	case o.At != "":
		if at, err = c.counter("at", o.At); err == nil {
			_, err = c.event(ctx, at)
		}
		return at, nil, err
	case o.Before != "":
		at, err = c.counter("before", o.Before)
	default:
		at, err = c.counter("regenerate", o.Regenerate)
	}
	if err != nil {
		return 0, nil, err
	}
	if o.Before != "" {
		_, err = c.event(ctx, at)
		at--
	} else {
		at, ask, err = c.beforeAttempt(ctx, at)
	}
	if err != nil {
		return 0, nil, err
	}
	if at == 0 {
		return 0, nil, &event.FieldError{Field: "before", Problem: "the log begins with this event (send to a new context)"}
	}
	return at, ask, nil
}

// beforeAttempt returns the counter of the event before the first attempt to give an answer: after the previous step
// and the previous compaction. An answer without a request was sent by a client.
func (c *Context) beforeAttempt(ctx context.Context, answer int) (at int, ask []event.Event, err error) {
	given, err := c.event(ctx, answer)
	if err != nil {
		return 0, nil, err
	}
	body, ok := given.Body.(event.AssistantMessage)
	if !ok {
		return 0, nil, &event.FieldError{Field: "regenerate", Problem: fmt.Sprintf("event %s is no answer (want an AssistantMessageEvent)", given.ID)}
	}
	at = answer - 1
	isAttempt := body.RequestID != "" // the event belongs to the attempts to give the answer
	var asked event.AnswerRequested
	askedBy := 0 // counter of the newest event before them that requests an answer; 0: not found
	for e, err := range c.backwards(ctx, answer-1) {
		if err != nil {
			return 0, nil, err
		}
		n := event.Counter(e.ID)
		isAttempt = isAttempt && n > event.Counter(body.ThroughEventID)
		switch b := e.Body.(type) {
		case event.LLMRequestStarted:
			if isAttempt && b.RequestID == body.RequestID && b.Purpose == "" {
				at = n - 1
			}
		case event.Compacted:
			isAttempt = false
		case event.LLMAttemptEnded:
			isAttempt = isAttempt && b.Outcome != event.AttemptToolCalls
		}
		if event.RequiresAnswer(e.Body) && (askedBy == 0 || askedBy > at) {
			asked.Settings, askedBy = turnSettings(e.Body), n
		}
		if !isAttempt && askedBy > 0 && askedBy <= at {
			break
		}
	}
	return at, []event.Event{event.New(asked)}, nil
}

// turnSettings returns the settings of the event that requests a turn.
func turnSettings(body event.Body) *event.RequestSettings {
	switch body := body.(type) {
	case event.UserMessage:
		return body.Settings
	case event.AnswerRequested:
		return body.Settings
	}
	return nil
}

// backwards yields the events up to a counter, newest first. It reads few of them at first, then more at a time.
func (c *Context) backwards(ctx context.Context, through int) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for size := 32; through > 0; size *= 4 {
			events, err := between(ctx, c.Events, c.name, max(0, through-size), through)
			if err != nil {
				yield(event.Event{}, err)
				return
			}
			for _, e := range slices.Backward(events) {
				if !yield(e, nil) {
					return
				}
			}
			through -= size
		}
	}
}

// event returns an event of the context.
func (c *Context) event(ctx context.Context, counter int) (event.Event, error) {
	events, err := between(ctx, c.Events, c.name, counter-1, counter)
	if err != nil {
		return event.Event{}, err
	}
	return events[0], nil
}

// between returns the events of a log after a counter through another.
func between(ctx context.Context, read func(context.Context, string) iter.Seq2[event.Event, error], name string, after, through int) ([]event.Event, error) {
	from := ""
	if after > 0 {
		from = event.FormatID(name, after)
	}
	var events []event.Event
	for e, err := range read(ctx, from) {
		if err != nil {
			return nil, err
		}
		if events = append(events, e); event.Counter(e.ID) == through {
			return events, nil
		}
	}
	return nil, fmt.Errorf("read event %s: %w", event.FormatID(name, through), ErrNoEvent)
}

// maxPrologue bounds the events between the begin of a fork and its first message.
const maxPrologue = 32

// origin returns the origin of a fork at an event. If c shares the event with its own origin, or it precedes the first
// message of c, that origin is also the one of the fork, to which the settings in between are sent.
func (c *Context) origin(ctx context.Context, at int) (origin archive.Origin, settings []event.Event, err error) {
	for read, name := c.Events, c.name; ; {
		above, err := c.client.originOf(ctx, name)
		if err != nil {
			return origin, nil, err
		}
		isShared := above != nil && at <= above.At
		if above != nil && !isShared && at-above.At <= maxPrologue {
			events, err := between(ctx, read, name, above.At, at)
			if err != nil {
				return origin, nil, err
			}
			var sent []event.Event
			sent, isShared = prologue(events)
			settings = slices.Concat(sent, settings)
		}
		switch {
		case isShared:
			at = min(at, above.At)
			origin = archive.Origin{ContextName: above.ContextName, RunID: above.RunID, At: at, CreatedAt: now()}
			name = above.ContextName
			read = func(ctx context.Context, from string) iter.Seq2[event.Event, error] {
				return c.client.context(origin.ContextName).RunEvents(ctx, origin.RunID, from)
			}
		case name == c.name:
			origin, err = c.originAt(ctx, at)
			return origin, nil, err
		default:
			return origin, settings, nil
		}
	}
}

// prologue returns the input among the first events of a fork, and false if they contain a message, a call or a result.
func prologue(events []event.Event) (settings []event.Event, ok bool) {
	for _, e := range events {
		switch body := e.Body.(type) {
		case event.Setting, event.SystemPrompt:
			again := event.New(body)
			again.Extra = e.Extra
			settings = append(settings, again)
		case event.ToolResult:
			if !reflect.DeepEqual(body, event.UnknownResult(body.ToolCallID)) {
				return nil, false
			}
		case event.SessionStarted, event.SessionEnded, event.LLMRequestInterrupted, event.AnswerRequested, event.InputRejected, event.SetDetails:
		default:
			return nil, false
		}
	}
	return settings, true
}

// context returns a handle for a context that the archive names.
func (c *Client) context(name string) *Context { return &Context{client: c, name: name} }

// originOf returns the origin of a fork; nil if the context is none, or if its origin is deleted.
func (c *Client) originOf(ctx context.Context, name string) (*archive.Origin, error) {
	origin, err := c.options.Archive.Origin(ctx, name)
	if err == nil && origin != nil {
		_, err = c.options.Archive.Origin(ctx, origin.ContextName)
	}
	if errors.Is(err, archive.ErrNoRun) {
		return nil, nil
	}
	return origin, err
}
