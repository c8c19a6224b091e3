package activities

import (
	"cmp"
	"context"
	"math"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// OpenInput is the input of [Activities.Open].
type OpenInput struct {
	ContextName    string `json:"contextName"`
	ContinuedRunID string `json:"continuedRunId,omitempty"` // "": the run continues none
	After          int    `json:"after,omitempty"`          // counter of the session's newest event
	Unarchived     bool   `json:"unarchived,omitempty"`     // the log of ContinuedRunID is archived later
	Reset          bool   `json:"reset,omitempty"`          // a reset created the run
	HasSession     bool   `json:"hasSession,omitempty"`     // the run's history contains the session
	// PreviousRunID is the run that the memo of a new run names; "": none.
	PreviousRunID string `json:"previousRunId,omitempty"`
	// ClaimedStore is the blob store that the memo of a new run names, if it is not that of the worker.
	ClaimedStore string `json:"claimedStore,omitempty"`
}

// OpenResult is the result of [Activities.Open]. The history contains it, so all workers use the
// same settings for the run.
type OpenResult struct {
	RunID         string        `json:"runId,omitempty"`         // that was registered
	StoreID       string        `json:"storeId,omitempty"`       // identity of the blob store
	PreviousRunID string        `json:"previousRunId,omitempty"` // the run before this one; "": none
	ForkedFrom    string        `json:"forkedFrom,omitempty"`    // event id, in the first session of a fork; else ""
	Root          string        `json:"root,omitempty"`          // the context from which a fork descends; else ""
	Session       []byte        `json:"session,omitempty"`       // for [wire.Unpack]; empty without a log, and if the run already has the session
	Rules         reducer.Rules `json:"rules,omitempty"`
	// Unrecorded are positions after which earlier runs accepted input that no run recorded, oldest first, for
	// [Activities.Recover].
	Unrecorded []wire.Taken `json:"unrecorded,omitempty"`
	// The following are those of [Options].
	SearchAttributes  bool   `json:"searchAttributes"`
	DetailAttributes  bool   `json:"detailAttributes,omitempty"`
	DefaultProviderID string `json:"defaultProviderId,omitempty"`
	DefaultModel      string `json:"defaultModel,omitempty"`
	ContinueAfter     int    `json:"continueAfter,omitempty"`
	FailoverMs        int64  `json:"failoverMs"`
	IdleCloseMs       int64  `json:"idleCloseMs,omitempty"`
	// Deliveries are the hooks that receive the events of the run.
	Deliveries []Delivery `json:"deliveries,omitempty"`
}

// Delivery is the state of a hook with OnEvent when a run begins.
type Delivery struct {
	Hook    string `json:"hook"`
	Through int    `json:"through,omitempty"` // counter of the newest event that the hook received or does not need; 0: unknown
}

// Open registers a run in the archive. If the run does not have the session yet, Open restores it from the log of
// earlier runs.
func (a *Activities) Open(ctx context.Context, in OpenInput) (OpenResult, error) {
	result := OpenResult{
		RunID: activity.GetInfo(ctx).WorkflowExecution.RunID, PreviousRunID: in.ContinuedRunID, Rules: a.options.Rules,
		SearchAttributes: a.options.SearchAttributes, DetailAttributes: a.options.DetailAttributes, DefaultProviderID: a.options.DefaultProviderID, DefaultModel: a.options.DefaultModel,
		ContinueAfter: a.options.ContinueAfter,
		FailoverMs:    cmp.Or(a.options.Failover, DefaultFailover).Milliseconds(), IdleCloseMs: a.options.IdleClose.Milliseconds(),
	}
	var err error
	if result.StoreID, err = a.options.Archive.Store().Identity(ctx); err != nil {
		return result, err
	}
	if in.ClaimedStore != "" && in.ClaimedStore != result.StoreID {
		isOurs, err := a.isBound(ctx, result.StoreID)
		if err != nil || !isOurs {
			return OpenResult{StoreID: in.ClaimedStore}, err
		}
	}
	var base string
	if in.Reset && in.ContinuedRunID == "" {
		if base, err = a.log.Base(ctx, in.ContextName, result.RunID); err != nil {
			return result, err
		}
	}
	if in.ContinuedRunID != "" || in.HasSession {
		err = a.continueLog(ctx, in, base, &result)
	} else {
		err = a.openLog(ctx, in, base, &result)
	}
	return result, err
}

// continueLog registers a run that has the session. base is the run before a reset; "": there was none.
func (a *Activities) continueLog(ctx context.Context, in OpenInput, base string, result *OpenResult) error {
	through := in.After
	switch {
	case base != "":
		through = math.MaxInt // archive also the events after the reset point: they are a branch of the log
	case in.Unarchived:
		through = 0
	}
	run := archive.Run{ID: result.RunID, After: in.After, Behind: cmp.Or(in.ContinuedRunID, base)}
	err := a.log.Continue(ctx, in.ContextName, run, through)
	if err == nil && !in.HasSession {
		result.Deliveries, err = a.beginDeliveries(ctx, in.ContextName, run)
	}
	return err
}

// openLog registers a run that continues none, and restores the session from the log of earlier runs.
func (a *Activities) openLog(ctx context.Context, in OpenInput, base string, result *OpenResult) error {
	opened, err := a.log.Open(ctx, in.ContextName, result.RunID, base)
	if err != nil {
		return err
	}
	if result.Deliveries, err = a.beginDeliveries(ctx, in.ContextName, opened.Run); err != nil {
		return err
	}
	result.Root = opened.Root
	switch {
	case opened.Origin != nil:
		result.ForkedFrom = event.FormatID(opened.Origin.ContextName, opened.Origin.At)
	case eventlog.IsRun(opened.Run.Behind):
		result.PreviousRunID = opened.Run.Behind
	}
	if result.Unrecorded, err = a.log.Unrecorded(ctx, in.ContextName, opened, in.PreviousRunID); err != nil {
		return err
	}
	if len(opened.Events) > 0 {
		result.Session, err = wire.Pack(reducer.Load(in.ContextName, a.options.Reduce, opened.Events...))
	}
	return err
}

// isBound reports whether the namespace records a blob store as its own.
func (a *Activities) isBound(ctx context.Context, storeID string) (bool, error) {
	described, err := a.options.Temporal.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{
		Namespace: activity.GetInfo(ctx).Namespace,
	})
	return described.GetNamespaceInfo().GetData()[wire.MemoStore] == storeID, err
}

// beginDeliveries sets the cursors of hooks that are new to the context, before the run records
// anything.
func (a *Activities) beginDeliveries(ctx context.Context, contextName string, run archive.Run) (deliveries []Delivery, err error) {
	begin := archive.Position{RunID: run.Behind, After: run.After}
	for _, h := range a.options.Hooks {
		if h.OnEvent == nil {
			continue
		}
		cursor, err := a.options.Archive.Cursor(ctx, contextName, h.Name)
		if err == nil && cursor.IsNew() {
			first := archive.Progress{Position: begin}
			if h.FromStart {
				first = archive.Progress{}
			}
			err = cursor.Set(ctx, first)
		}
		if err != nil {
			return nil, err
		}
		d := Delivery{Hook: h.Name}
		if cursor.Progress.Position == begin {
			d.Through = run.After
		}
		deliveries = append(deliveries, d)
	}
	return deliveries, nil
}
