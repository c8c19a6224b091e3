package activities

import (
	"cmp"
	"context"
	"math"

	"go.temporal.io/sdk/activity"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/eventlog"
	"github.com/seed-9ed7edd4/chronicle/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

// OpenInput says what a run begins with.
type OpenInput struct {
	ContextName string `json:"contextName"`
	// ContinuedRunID is the run that this one continues as new; "" when the run
	// begins a session and restores the log.
	ContinuedRunID string `json:"continuedRunId,omitempty"`
	// After is the counter of the newest event of the session of a run that does
	// not restore one.
	After int `json:"after,omitempty"`
	// Unarchived says that the run archives the log of ContinuedRunID later.
	Unarchived bool `json:"unarchived,omitempty"`
	// Reset says that the run was made by a reset. HasSession says that the reset
	// left it the session.
	Reset      bool `json:"reset,omitempty"`
	HasSession bool `json:"hasSession,omitempty"`
}

// OpenResult is what a run begins with.
type OpenResult struct {
	// RunID is the run that is registered, and StoreID the blob store where.
	RunID   string `json:"runId,omitempty"`
	StoreID string `json:"storeId,omitempty"`
	// PreviousRunID is the run with the session before; "" for the first.
	PreviousRunID string `json:"previousRunId,omitempty"`
	// ForkedFrom is the event that the context was forked from, when it has had no
	// session since; else "".
	ForkedFrom string `json:"forkedFrom,omitempty"`
	// Session is what the log of the earlier runs folds into, for [wire.Unpack]; empty
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

// Open registers a run in the archive, decides for it what its workers may differ
// in, and restores the session from the log of the earlier runs.
func (a *Activities) Open(ctx context.Context, in OpenInput) (OpenResult, error) {
	result := OpenResult{
		RunID: activity.GetInfo(ctx).WorkflowExecution.RunID, PreviousRunID: in.ContinuedRunID, Rules: a.options.Rules,
		SearchAttributes: a.options.SearchAttributes, DefaultModel: a.options.DefaultModel,
		ContinueAfter: a.options.ContinueAfter,
	}
	var err error
	if result.StoreID, err = a.options.Archive.Store().Identity(ctx); err != nil {
		return result, err
	}
	var base string
	if in.Reset && in.ContinuedRunID == "" {
		if base, err = a.log.Base(ctx, in.ContextName, result.RunID); err != nil {
			return result, err
		}
	}
	if in.ContinuedRunID != "" || in.HasSession {
		through := in.After
		switch {
		case base != "":
			through = math.MaxInt // the reset leaves a branch
		case in.Unarchived:
			through = 0
		}
		return result, a.log.Continue(ctx, in.ContextName,
			archive.Run{ID: result.RunID, After: in.After, Behind: cmp.Or(in.ContinuedRunID, base)}, through)
	}
	opened, err := a.log.Open(ctx, in.ContextName, result.RunID, base)
	if err != nil {
		return result, err
	}
	switch {
	case opened.Origin != nil:
		result.ForkedFrom = event.FormatID(opened.Origin.ContextName, opened.Origin.At)
	case eventlog.IsRun(opened.Run.Behind):
		result.PreviousRunID = opened.Run.Behind
	}
	if len(opened.Events) > 0 {
		result.Session, err = wire.Pack(reducer.Load(in.ContextName, a.options.Reduce, opened.Events...))
	}
	return result, err
}
