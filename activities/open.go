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

// OpenInput is the input of [Activities.Open].
type OpenInput struct {
	ContextName    string `json:"contextName"`
	ContinuedRunID string `json:"continuedRunId,omitempty"` // "": the run continues none
	After          int    `json:"after,omitempty"`          // counter of the session's newest event
	Unarchived     bool   `json:"unarchived,omitempty"`     // the log of ContinuedRunID is archived later
	Reset          bool   `json:"reset,omitempty"`          // a reset created the run
	HasSession     bool   `json:"hasSession,omitempty"`     // the run's history contains the session
}

// OpenResult is the result of [Activities.Open]. The history contains it, so all workers use the
// same settings for the run.
type OpenResult struct {
	RunID         string        `json:"runId,omitempty"`         // that was registered
	StoreID       string        `json:"storeId,omitempty"`       // identity of the blob store
	PreviousRunID string        `json:"previousRunId,omitempty"` // of the previous session; "": none
	ForkedFrom    string        `json:"forkedFrom,omitempty"`    // event id; "": no fork, or a later session
	Session       []byte        `json:"session,omitempty"`       // for [wire.Unpack]; empty without a log
	Rules         reducer.Rules `json:"rules,omitempty"`
	// SearchAttributes, DefaultModel and ContinueAfter are those of [Options].
	SearchAttributes bool   `json:"searchAttributes"`
	DefaultModel     string `json:"defaultModel,omitempty"`
	ContinueAfter    int    `json:"continueAfter,omitempty"`
}

// Open registers a run in the archive and restores the session from the log of earlier runs.
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
			through = math.MaxInt // the events after the reset point are a branch
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
