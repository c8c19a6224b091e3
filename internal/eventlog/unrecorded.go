package eventlog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	updatepb "go.temporal.io/api/update/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// A run that is terminated, or times out, may have accepted input that it did not record. The next run that a worker
// opens finds it by two facts: the records of a run say how far it had processed its input, and the registrations and
// memos of runs name the run before. It reads such input from the histories, of which nothing changes any more.

// Unrecorded returns the positions after which earlier runs accepted input that no run recorded, oldest first. Previous
// is the run that the memo of the opened run names, "" for none.
func (l *Log) Unrecorded(ctx context.Context, contextName string, o Opening, previous string) ([]wire.Taken, error) {
	if previous == "" && !IsRun(o.Run.Behind) {
		return nil, nil
	}
	w := &walk{log: l, contextName: contextName, registered: o.Run.Behind, named: previous, seen: map[string]bool{o.Run.ID: true}}
	var err error
	if w.folder, err = l.archive.Folder(ctx, contextName); err != nil {
		return nil, err
	}
	isClosed := len(o.Events) > 0 && o.Events[len(o.Events)-1].Tag() == event.TagSessionEnded
	for isDone := false; !isDone; {
		runID, isRegistered, err := w.next(ctx)
		if err != nil || runID == "" {
			return w.unrecorded(), err
		}
		isDone, err = w.visit(ctx, runID, isRegistered)
		if errors.Is(err, ErrNoContext) { // the retention period has expired, or, without registrations, it was deleted
			if o.Run.Behind != "" && (runID != o.Run.Behind || !isClosed) {
				w.found = append(w.found, wire.Taken{RunID: runID})
			}
			isDone, err = isRegistered, nil // it may have recorded input of the runs before
		}
		if err != nil {
			return nil, fmt.Errorf("look for unrecorded input of context %s, run %s: %w", contextName, runID, err)
		}
	}
	return w.unrecorded(), nil
}

// walk visits the runs of a context, newest first, until all input before is recorded.
type walk struct {
	log         *Log
	contextName string
	folder      *archive.Folder
	registered  string          // the newest registered run that is not visited
	named       string          // by the run after it; "": none
	seen        map[string]bool // anyone can start a run with any memo
	original    string          // the run of which the run visited last is a copy, or itself
	taken       *wire.Taken     // by the runs visited so far; nil: nothing
	found       []wire.Taken    // newest first
}

func (w *walk) unrecorded() []wire.Taken {
	slices.Reverse(w.found)
	return w.found
}

// next returns the run before the one visited last; "": there is none. A run that is registered comes in the order
// of registrations.
func (w *walk) next(ctx context.Context) (runID string, isRegistered bool, err error) {
	runID, w.named = w.named, ""
	if runID != "" && runID != w.registered && !w.seen[runID] {
		w.seen[runID] = true
		if _, err = w.folder.Run(ctx, runID); errors.Is(err, archive.ErrNoRun) {
			return runID, false, nil
		}
	}
	if runID = w.registered; err != nil || !IsRun(runID) {
		return "", false, err
	}
	run, err := w.folder.Run(ctx, runID)
	w.registered = run.Behind
	return runID, true, err
}

// visit reports whether everything that was accepted before the input found so far is recorded.
func (w *walk) visit(ctx context.Context, runID string, isRegistered bool) (isDone bool, err error) {
	info, err := w.describe(ctx, runID)
	switch {
	case !isRegistered && errors.As(err, new(*serviceerror.InvalidArgument)): // a memo may name anything
		return false, nil
	case err != nil:
		return false, err
	case info.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED:
		// The server completes no run with unprocessed input. Anyone can run a workflow that does not register.
		return isRegistered, nil
	}
	if !isRegistered && IsRun(w.registered) {
		registered, err := w.describe(ctx, w.registered)
		if err == nil && info.GetStartTime().AsTime().Before(registered.GetStartTime().AsTime()) {
			return false, nil // that run has looked for the input before it
		}
	}
	original, named := "", ""
	var taken *wire.Taken
	for page, err := range w.log.pages(ctx, w.contextName, runID, bookmark{}, 0) {
		if err != nil {
			return false, err
		}
		for _, h := range page.entries {
			if started := h.GetWorkflowExecutionStartedEventAttributes(); started != nil {
				original = started.GetOriginalExecutionRunId()
				named = cmp.Or(started.GetContinuedExecutionRunId(), wire.PreviousRunOf(started.GetMemo()))
			}
			if !isRegistered {
				continue // a run registers before it records anything
			}
			record, err := w.log.record(ctx, h)
			if err != nil {
				return false, err
			}
			if record.Taken != nil {
				taken = record.Taken
			}
		}
	}
	w.named = named
	// A reset creates a copy of a run, with all of its signals. The log goes on with the copy once that is registered.
	if isCopy := original != runID; original == w.original || isCopy && !isRegistered {
		return false, nil
	}
	w.original = original
	if w.taken == nil && taken != nil {
		w.taken = &wire.Taken{RunID: cmp.Or(taken.RunID, runID), Signals: taken.Signals}
	}
	from := wire.Taken{RunID: runID}
	if isDone = w.taken != nil && w.taken.RunID == runID; isDone {
		from = *w.taken
	}
	w.found = append(w.found, from)
	return isDone, nil
}

func (w *walk) describe(ctx context.Context, runID string) (*workflowpb.WorkflowExecutionInfo, error) {
	d, err := w.log.describe(ctx, w.contextName, runID)
	return d.GetWorkflowExecutionInfo(), notFound(err)
}

// Accepted is an input in the history of a run.
type Accepted struct {
	Name     string // of the signal; "": an update
	UpdateID string
	Payloads *commonpb.Payloads
	Signals  int // number of the signals through this input
}

// Accepted returns input that a run accepted after a position, in order, and reports whether there is no more. It stops
// at a signal when it has limit bytes. Of the updates, it returns those whose senders received no result, and that
// have not expired. The error is [ErrNoContext] if the server has no history of the run.
func (l *Log) Accepted(ctx context.Context, contextName string, after wire.Taken, limit int, now time.Time) (all []Accepted, isComplete bool, err error) {
	updates := map[string]bool{} // with a result
	signals, size := 0, 0
	isComplete = true
	add := func(in Accepted) {
		if in.Signals = signals; size >= limit && in.Name != "" && signals > after.Signals+1 { // a part has a signal
			isComplete = false
		}
		if isComplete && signals >= after.Signals {
			all, size = append(all, in), size+proto.Size(in.Payloads)
		}
	}
	for page, err := range l.pages(ctx, contextName, after.RunID, bookmark{}, 0) {
		if err != nil {
			return nil, false, readError(contextName, after.RunID, err)
		}
		for _, h := range page.entries {
			if in := h.GetWorkflowExecutionSignaledEventAttributes(); in != nil {
				if signals++; signals > after.Signals {
					add(Accepted{Name: in.GetSignalName(), Payloads: in.GetInput()})
				}
			}
			request, expiry := h.GetWorkflowExecutionUpdateAcceptedEventAttributes().GetAcceptedRequest(), now
			if repeated := h.GetWorkflowExecutionUpdateAdmittedEventAttributes().GetRequest(); repeated != nil {
				request, expiry = repeated, time.Time{} // a reset repeats updates, which their senders do not
			}
			if payloads := pending(request, expiry); payloads != nil {
				add(Accepted{UpdateID: request.GetMeta().GetUpdateId(), Payloads: payloads})
			}
			updates[h.GetWorkflowExecutionUpdateCompletedEventAttributes().GetMeta().GetUpdateId()] = true
			updates[h.GetWorkflowExecutionUpdateRejectedEventAttributes().GetRejectedRequest().GetMeta().GetUpdateId()] = true
		}
		all = slices.DeleteFunc(all, func(in Accepted) bool { return in.Name == "" && updates[in.UpdateID] })
		if !isComplete && !slices.ContainsFunc(all, func(in Accepted) bool { return in.Name == "" }) {
			break // the rest of the history changes nothing
		}
	}
	return all, isComplete, nil
}

// pending returns the events of an update that appends them and has not expired; else nil.
func pending(request *updatepb.Request, now time.Time) *commonpb.Payloads {
	arguments := request.GetInput().GetArgs().GetPayloads()
	if request.GetInput().GetName() != wire.UpdateAppend || len(arguments) == 0 {
		return nil
	}
	var sent wire.Sent
	if len(arguments) > 1 && converter.GetDefaultDataConverter().FromPayload(arguments[1], &sent) == nil && sent.IsExpired(now) {
		return nil
	}
	return &commonpb.Payloads{Payloads: arguments[:1]}
}
