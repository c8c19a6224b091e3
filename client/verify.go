package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/eventlog"
	"github.com/seed-9ed7edd4/chronicle/eventlog/blobs"
)

// Verification is what a log was found to be.
type Verification struct {
	ContextName string `json:"contextName"`
	// Events is how many events could be read; those behind the archive are in
	// the history of the server alone.
	Events int `json:"events"`
	// Segments is how many segments of the archive the log needs.
	Segments int `json:"segments"`
	// InHistory is how many of the events the archive does not have yet.
	InHistory int `json:"inHistory"`
	// Problems is what is wrong, in the order of the archive and then of the log.
	Problems []Problem `json:"problems"`
}

// Problem is something that is wrong with a log.
type Problem struct {
	// Place is the id of an event, or an entry of the archive.
	Place string `json:"place"`
	// Text says what is wrong.
	Text string `json:"text"`
}

// Verify reads all that there is of the context, in the archive and in the
// histories, and says what is wrong with it: what the archive has lost or does
// not have as it was written, events that nobody has any more, ids that are not
// dense, parents that are not the event before, another context's name, times
// that run backwards, and what no event can be. The error is ErrNoContext, or
// says why it could not be read.
func (c *Context) Verify(ctx context.Context) (Verification, error) {
	v := Verification{ContextName: c.name, Problems: []Problem{}}
	archived := 0
	if logs := c.client.options.Archive; logs != nil {
		for problem, err := range logs.Check(ctx, c.name) {
			if err != nil {
				return v, err
			}
			v.Problems = append(v.Problems, Problem(problem))
		}
		var err error
		if v.Segments, archived, err = c.client.log.Archived(ctx, c.name); err != nil && !errors.Is(err, ErrNoContext) && !errors.Is(err, blobs.ErrCorrupt) && !errors.Is(err, blobs.ErrNotFound) {
			return v, err
		}
	}
	pass := pass{contextName: c.name}
	for from, more := "", true; more; {
		more = false
		for e, err := range c.Events(ctx, from) {
			if gap := (*eventlog.GapError)(nil); errors.As(err, &gap) {
				v.Problems = append(v.Problems, Problem{event.FormatID(c.name, gap.First), err.Error()})
				// The rest of the log is behind it.
				pass.last.ID = event.FormatID(c.name, gap.Last)
				from, more = pass.last.ID, gap.Last > 0
				break
			}
			if err != nil {
				return v, err
			}
			v.Events++
			if event.Counter(e.ID) > archived {
				v.InHistory++
			}
			v.Problems = append(v.Problems, pass.see(e)...)
		}
	}
	return v, nil
}

// pass is a pass through a log.
type pass struct {
	contextName string
	// last is the event before.
	last event.Event
}

// see returns what is wrong with the next event.
func (p *pass) see(e event.Event) []Problem {
	var problems []Problem
	wrong := func(format string, args ...any) {
		problems = append(problems, Problem{e.ID, fmt.Sprintf(format, args...)})
	}
	if id := event.FormatID(p.contextName, event.Counter(p.last.ID)+1); e.ID != id {
		wrong("stands where %s belongs", id)
	}
	if e.ParentID != p.last.ID {
		wrong("has the parent %q where %q came before it", e.ParentID, p.last.ID)
	}
	if e.ContextName != p.contextName {
		wrong("says that it is of the context %q", e.ContextName)
	}
	if e.Timestamp.Before(p.last.Timestamp) {
		wrong("is of %s, which is before %s, the time of the event before it",
			e.Timestamp.Format(time.RFC3339Nano), p.last.Timestamp.Format(time.RFC3339Nano))
	}
	if err := e.Validate(); err != nil {
		wrong("%v", err)
	}
	p.last = e
	return problems
}
