package activities

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"go.temporal.io/sdk/activity"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/eventlog"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// OpenInput says what a run begins with.
type OpenInput struct {
	ContextName string `json:"contextName"`
	// ContinuedRunID is the run that this one continues as new; "" when the run
	// begins a session and restores the log.
	ContinuedRunID string `json:"continuedRunId,omitempty"`
}

// OpenResult is what a run begins with.
type OpenResult struct {
	// PreviousRunID is the run with the session before; "" for the first.
	PreviousRunID string `json:"previousRunId,omitempty"`
	// ForkedFrom is the event that the context was forked from, when it has had no
	// session since; else "".
	ForkedFrom string `json:"forkedFrom,omitempty"`
	// Session is what the log of the earlier runs folds into, for [Unpack]; empty
	// without a log. A long one is a reference in the history.
	Session []byte `json:"session,omitempty"`
	// Rules are those of the session. The result stands in the history, so a run
	// keeps them whatever its workers become.
	Rules reducer.Rules `json:"rules,omitempty"`
	// SearchAttributes is decided here, once for the session, since workers may
	// differ.
	SearchAttributes bool   `json:"searchAttributes"`
	DefaultModel     string `json:"defaultModel,omitempty"`
	// ContinueAfter is how many entries a history has before another run goes
	// on; 0 leaves it to the server.
	ContinueAfter int `json:"continueAfter,omitempty"`
}

// Open decides once for a run what its workers may differ in, and restores the
// session from the log of the earlier runs.
func (a *Activities) Open(ctx context.Context, in OpenInput) (OpenResult, error) {
	result := OpenResult{
		PreviousRunID: in.ContinuedRunID, Rules: a.options.Rules,
		SearchAttributes: a.options.SearchAttributes, DefaultModel: a.options.DefaultModel,
		ContinueAfter: a.options.ContinueAfter,
	}
	if in.ContinuedRunID != "" {
		return result, nil
	}
	var err error
	run := activity.GetInfo(ctx).WorkflowExecution.RunID
	if result.PreviousRunID, err = a.log.Previous(ctx, in.ContextName, run); err != nil {
		return result, err
	}
	if result.Session, err = a.restore(ctx, in.ContextName, result.PreviousRunID); err != nil {
		return result, err
	}
	if len(result.Session) > 0 && result.PreviousRunID == "" {
		result.ForkedFrom, err = a.forkedFrom(ctx, in.ContextName)
	}
	return result, err
}

// forkedFrom is the event that a context was forked from; "" when it was not, or
// has events of its own already.
func (a *Activities) forkedFrom(ctx context.Context, contextName string) (string, error) {
	origin, ok, err := a.options.Archive.Origin(ctx, contextName)
	if err != nil || !ok {
		return "", err
	}
	last, err := a.options.Archive.Last(ctx, contextName)
	if err != nil || last > origin.At {
		return "", err
	}
	return event.FormatID(origin.ContextName, origin.At), nil
}

// restore folds the log up to a run, and packs the session.
func (a *Activities) restore(ctx context.Context, contextName, runID string) ([]byte, error) {
	var events []event.Event
	for e, err := range a.log.UpTo(ctx, contextName, runID) {
		if errors.Is(err, eventlog.ErrNoContext) {
			// Listed, but the retention of the server has taken it.
			break
		}
		if err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	if len(events) == 0 {
		return nil, nil
	}
	return Pack(reducer.Load(contextName, a.options.Reduce, events...))
}

// Pack compresses a session. It is done within a workflow task, so it is done
// fast.
func Pack(session reducer.Session) ([]byte, error) {
	var buf bytes.Buffer
	w, err := gzip.NewWriterLevel(&buf, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(session); err != nil {
		return nil, fmt.Errorf("pack the session of context %s: %w", session.ContextName, err)
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

// Unpack is the session that was packed.
func Unpack(packed []byte) (reducer.Session, error) {
	var session reducer.Session
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err == nil {
		var data []byte
		// All of it is read, so that its checksum is.
		if data, err = io.ReadAll(r); err == nil {
			err = json.Unmarshal(data, &session)
		}
	}
	if err != nil {
		return session, fmt.Errorf("unpack a session of %d bytes: %w", len(packed), err)
	}
	return session, nil
}
