package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
)

// Verification is the result of verifying a log.
type Verification struct {
	ContextName string    `json:"contextName"`
	Events      int       `json:"events"` // events that could be read
	Segments    int       `json:"segments"`
	InHistory   int       `json:"inHistory"` // events that only the history contains
	Problems    []Problem `json:"problems"`  // of the archive, then of the log in log order
}

// Problem is a defect of a log or of its archive.
type Problem struct {
	Place string `json:"place"` // id of an event, or name of an object or folder in the blob store
	Text  string `json:"text"`
}

// Verify reads the whole log from the archive and the histories. It reports missing or damaged
// segments, missing events, ids, parents and context names out of sequence, decreasing timestamps,
// invalid fields, and missing or damaged bytes that events refer to ([event.Event.BlobRef]). The error is
// ErrNoContext, or a reason why the log or its bytes could not be read.
func (c *Context) Verify(ctx context.Context) (Verification, error) {
	v := Verification{ContextName: c.Name(), Problems: []Problem{}}
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
	verifier := verifier{contextName: c.name}
	read := map[string]string{}
	for from, more := "", true; more; {
		more = false
		for e, err := range c.Events(ctx, from) {
			if gap := (*eventlog.GapError)(nil); errors.As(err, &gap) {
				v.Problems = append(v.Problems, Problem{event.FormatID(c.name, gap.First), err.Error()})
				verifier.last.ID = event.FormatID(c.name, gap.Last)
				from, more = verifier.last.ID, gap.Last > 0
				break
			}
			if err != nil {
				return v, err
			}
			v.Events++
			if event.Counter(e.ID) > archived {
				v.InHistory++
			}
			v.Problems = append(v.Problems, verifier.check(e)...)
			problem, err := c.verifyBlob(ctx, e, read)
			if err != nil {
				return v, err
			}
			if problem != "" {
				v.Problems = append(v.Problems, Problem{e.ID, problem})
			}
		}
	}
	return v, nil
}

// verifyBlob returns what is wrong with the bytes that an event refers to; "" for nothing. read has the results by
// reference.
func (c *Context) verifyBlob(ctx context.Context, e event.Event, read map[string]string) (problem string, err error) {
	ref := e.BlobRef()
	problem, isRead := read[ref]
	if ref == "" || isRead {
		return problem, nil
	}
	if _, err = c.Blob(ctx, ref); isMissing(err) {
		problem, err = err.Error(), nil
	}
	if err != nil {
		return "", fmt.Errorf("verify event %s: %w", e.ID, err)
	}
	read[ref] = problem
	return problem, nil
}

type verifier struct {
	contextName string
	last        event.Event
}

func (v *verifier) check(e event.Event) []Problem {
	var problems []Problem
	report := func(format string, args ...any) {
		problems = append(problems, Problem{e.ID, fmt.Sprintf(format, args...)})
	}
	if id := event.FormatID(v.contextName, event.Counter(v.last.ID)+1); e.ID != id {
		report("the id is out of sequence (want %s)", id)
	}
	if e.ParentID != v.last.ID {
		report("the parent is %q (want the preceding event %q)", e.ParentID, v.last.ID)
	}
	if _, local := event.CutTenant(v.contextName); e.ContextName != local {
		report("the context name is %q (want %q)", e.ContextName, local)
	}
	if e.Timestamp.Before(v.last.Timestamp) {
		report("the timestamp %s is earlier than %s of the preceding event",
			e.Timestamp.Format(time.RFC3339Nano), v.last.Timestamp.Format(time.RFC3339Nano))
	}
	if err := e.Validate(); err != nil {
		report("%v", err)
	}
	v.last = e
	return problems
}
