package workflows

import (
	"encoding/json"
	"fmt"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/proto"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

// The server ends a run at 51,200 history entries or 50 MB, and refuses signals from
// 10,000 on, and a context has no end. So a run continues as new before that: its
// events are archived, and the next run begins with the session and with the signals
// that were not taken yet. Nothing is recorded, so the context does not change.
//
// A run continues as new between two requests if it can. When a request takes too
// long for that, its answer goes on: the next run adopts the generation, which runs
// detached in its worker process.
//
// Signals that arrive during a workflow task make the server refuse the end of the
// run once, with UnhandledCommand. It then repeats the task, and delays new signals
// until that task completes, so a flood of signals slows down and the second attempt
// succeeds, if the task waits for nothing.

const (
	// archiveWait is how long a run waits for the archive, and an answer that is to
	// be requested with it. Archiving goes on, for the next attempt.
	archiveWait = 250 * time.Millisecond
	// maxCarriedInbox is how many bytes of signals go to the next run, which takes them
	// with its input.
	maxCarriedInbox = 24 << 20
	// floodTaskTimeout is the workflow task timeout of a run that begins with a backlog
	// of signals; defaultTaskTimeout is that of Temporal.
	floodTaskTimeout   = 30 * time.Second
	defaultTaskTimeout = 10 * time.Second
	// maxUnarchived is how many events the archive may lag behind.
	maxUnarchived = 200
)

// extent is how far a run is on its way to a limit of the server.
type extent struct {
	entries, bytes   int
	signals, updates int
}

// reaches reports whether one of the numbers is at its limit.
func (e extent) reaches(limit extent) bool {
	return e.entries >= limit.entries || e.bytes >= limit.bytes || e.signals >= limit.signals || e.updates >= limit.updates
}

// When a run continues as new. The server ends it at 51,200 entries or 100 MiB (with
// deploy/dynamicconfig.yaml), and refuses signals from 10,000 on and updates from 2,000
// on. The differences are room for what arrives until the run has ended. Of bytes that
// is two buffers of 32 MiB: one of the task before the run is endangered, and one of the
// first attempt to end it. Hence a history has at most 80 MiB, and what arrives before
// a worker gets to a task.
var (
	// longRun: between two requests. The entries are a setting, see isLong.
	longRun = extent{entries: 4_096, bytes: 4 << 20, signals: 3_000, updates: 1_000}
	// overdueRun: during an answer. It may have half as many entries again.
	overdueRun = extent{bytes: 6 << 20, signals: 3_500, updates: 1_500}
	// endangeredRun: without delay, even when the archive lags behind or the answer
	// has to be requested again.
	endangeredRun = extent{entries: 45_000, bytes: 16 << 20, signals: 4_000, updates: 1_900}
)

// In a flood of signals, the history grows by floodBytes from one workflow task to the
// next, or a task receives floodSignalBytes. The server counts the signals that it
// buffered during a task one task late. The second number is larger, since it may
// include inputs that are references in the history.
const (
	floodBytes       = 1 << 20
	floodSignalBytes = 4 << 20
)

// task describes the current workflow task.
type task struct {
	// length and size are those of the history when the task began; grown is the
	// difference of size to the task before.
	length, size, grown int
	// signalBytes is how many bytes of signals arrived with the task, and plainBytes
	// how many with the run.
	signalBytes, plainBytes int
	// recorded is how many bytes of events the task has recorded.
	recorded int
}

// noteTask updates r.task when a workflow task has begun.
func (r *run) noteTask() {
	info := workflow.GetInfo(r.ctx)
	if length := info.GetCurrentHistoryLength(); length != r.task.length {
		size := info.GetCurrentHistorySize()
		plain := r.inbox.plainBytes
		r.task = task{
			length: length, size: size, grown: size - r.task.size,
			signalBytes: plain - r.task.plainBytes, plainBytes: plain,
		}
	}
}

// isTaskFull reports whether the workflow task has recorded as much as it may.
func (r *run) isTaskFull() bool {
	if r.isEndangered() {
		return r.task.recorded >= maxLastTaskBytes
	}
	return r.task.recorded >= maxTaskBytes
}

// carried is the input of a run that another one has handed over to.
type carried struct {
	// Session is the session, packed.
	Session []byte `json:"session"`
	// Start is a request that waits to be made. Nil: none.
	Start *reducer.StartRequest `json:"start,omitempty"`
	// Running is the request that is being answered. Nil: none.
	Running *reducer.StartRequest `json:"running,omitempty"`
	// Inbox are the signals that were not taken yet.
	Inbox     []carriedSignal `json:"inbox,omitempty"`
	UpdatedAt time.Time       `json:"updatedAt,omitzero"`
	// Unarchived says that the archive may lack events of earlier runs.
	Unarchived bool `json:"unarchived,omitempty"`
	// Status, Turns and ShownAt are of what the search attributes show.
	Status  wire.Status `json:"status,omitempty"`
	Turns   int         `json:"turns,omitempty"`
	ShownAt time.Time   `json:"shownAt,omitzero"`
}

// carriedSignal is a signal as it came. Its payloads are a serialized
// temporal.api.common.v1.Payloads.
type carriedSignal struct {
	Name     string `json:"name"`
	Payloads []byte `json:"payloads,omitempty"`
}

// carriedBy is the input of a run that was handed over to; nil for one that
// somebody started, with whatever input.
func carriedBy(info *workflow.Info, input converter.RawValue) (*carried, error) {
	if info.ContinuedExecutionRunID == "" {
		return nil, nil
	}
	c := &carried{}
	if err := json.Unmarshal(input.Payload().GetData(), c); err != nil {
		return nil, fmt.Errorf("the input of a run that continues another: %w", err)
	}
	return c, nil
}

// extent is how far this run is.
func (r *run) extent() extent {
	info := workflow.GetInfo(r.ctx)
	return extent{info.GetCurrentHistoryLength(), info.GetCurrentHistorySize(), r.inbox.signalled, r.inbox.updated}
}

// isLong reports whether it is time to continue as new.
func (r *run) isLong() bool {
	now, long := r.extent(), longRun
	if r.continueAfter > 0 {
		long.entries = r.continueAfter
	}
	switch {
	case r.session.Ended:
		return false
	case r.isEndangered():
		return true
	case r.generate == nil:
		return now.reaches(long) || workflow.GetInfo(r.ctx).GetContinueAsNewSuggested()
	default:
		return r.isOverdue() && r.isAdoptable()
	}
}

// isOverdue reports whether the run continues as new even during an answer.
func (r *run) isOverdue() bool {
	overdue := overdueRun
	overdue.entries = longRun.entries
	if r.continueAfter > 0 {
		overdue.entries = r.continueAfter
	}
	overdue.entries += overdue.entries / 2
	return r.extent().reaches(overdue)
}

// isAdoptable reports whether the next run can go on with the running answer.
func (r *run) isAdoptable() bool {
	request := r.session.Request
	return request != nil && request.Worker != "" && request.Through != "" && request.Stop == "" &&
		len(r.effects) == 0 && !r.generate.IsReady()
}

// isEndangered reports whether the server would end the run soon.
func (r *run) isEndangered() bool {
	now := r.extent()
	now.bytes += r.task.signalBytes // which the server may not have counted
	return now.reaches(endangeredRun) || r.isFlooded()
}

// isFlooded reports whether signals arrive so fast that the run has to continue as new
// early: every task before that lets more of them in.
func (r *run) isFlooded() bool {
	isFlood := r.task.grown >= floodBytes || r.task.signalBytes >= floodSignalBytes
	return isFlood && (r.generate == nil || r.isAdoptable())
}

// isLeaving reports whether the run continues as new at once, with what is in the
// inbox. The less its task does, the fewer signals arrive in the meantime.
func (r *run) isLeaving() bool {
	return r.isLong() && r.isEndangered() && r.inbox.size <= maxCarriedInbox && (r.generate == nil || r.isAdoptable())
}

// continueAsNew ends the run with an error that starts the next one. It returns nil
// when there is a reason to go on for a while.
func (r *run) continueAsNew() error {
	if !r.isEndangered() && !r.isArchived() {
		return nil
	}
	// Updates whose events are recorded return their results first.
	r.await(func() bool { return r.unanswered == 0 })
	r.awaitAdopted()
	isReady := r.generate != nil && r.generate.IsReady()
	if r.inbox.isAwaited() && !r.isEndangered() || isReady || r.isInboxTooLarge() || r.isCancelled() {
		return nil // it is taken first
	}
	ctx := workflow.WithWorkflowTaskTimeout(r.ctx, r.taskTimeout())
	return workflow.NewContinueAsNewError(ctx, wire.WorkflowType, r.carry())
}

// isInboxTooLarge reports whether the run records signals before it continues as new.
// An endangered run does so for one workflow task: the server accepts more signals
// before each further task.
func (r *run) isInboxTooLarge() bool {
	return r.inbox.size > maxCarriedInbox && !(r.isEndangered() && r.isTaskFull())
}

// taskTimeout is the workflow task timeout of the next run. A task that times out lets
// the server accept more signals, and its repetition starts from an empty cache.
func (r *run) taskTimeout() time.Duration {
	switch current := workflow.GetInfo(r.ctx).WorkflowTaskTimeout; {
	case r.isEndangered():
		return max(current, floodTaskTimeout)
	case current == floodTaskTimeout:
		return defaultTaskTimeout
	default:
		return current
	}
}

// isArchived reports whether the archive lags behind by at most maxUnarchived events,
// which the next run archives. If it lags further, isArchived archives in the background.
// An overdue run may lag behind by more. While the store is unavailable no run can open,
// so none continues as new.
func (r *run) isArchived() bool {
	if r.archiving == nil && !r.isRecent(r.archivedThrough) {
		r.startArchiving()
		_, _ = workflow.AwaitWithTimeout(r.ctx, archiveWait, r.archiving.IsReady)
	}
	if r.archiving != nil && r.archiving.IsReady() {
		if r.archiving.Get(r.ctx, nil) == nil {
			r.archivedThrough, r.isUnarchived = r.archivingThrough, false
		}
		r.archiving = nil
	}
	return r.isRecent(r.archivedThrough)
}

// startArchiving archives the log up to now in the background.
func (r *run) startArchiving() {
	r.archiving, r.archivingThrough = r.archive(r.ctx), r.session.EventCount
}

// isRecent reports whether the next run can archive what comes after an event.
func (r *run) isRecent(through int) bool {
	return through > 0 && (r.isOverdue() || r.session.EventCount-through <= maxUnarchived)
}

// archive archives the log up to now.
func (r *run) archive(ctx workflow.Context) workflow.Future {
	options := workflow.GetActivityOptions(ctx)
	options.StartToCloseTimeout = activities.ArchiveTimeout
	options.RetryPolicy = &temporal.RetryPolicy{InitialInterval: 100 * time.Millisecond, MaximumInterval: 5 * time.Second}
	options.Summary = "archive up to " + r.session.LastEventID()
	return workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, options), acts.Archive,
		activities.ArchiveInput{ContextName: r.session.ContextName, Through: r.session.EventCount, Earlier: r.isUnarchived})
}

// archiveEnd archives the log of a session that has ended, however long that
// takes, unless more input comes before.
func (r *run) archiveEnd() {
	ctx, cancel := workflow.WithCancel(r.ctx)
	defer cancel()
	done := r.archive(ctx)
	r.await(func() bool { return done.IsReady() || !r.inbox.empty() })
}

// carry returns the input of the next run. A large one is a reference in the history.
func (r *run) carry() carried {
	c := carried{Session: pack(r.session), UpdatedAt: r.updatedAt, Status: r.status, Turns: r.turns, ShownAt: r.shownAt}
	c.Unarchived = r.isUnarchived || r.isOverdue() || r.isEndangered()
	for _, effect := range r.effects {
		// What else there is follows from the session, see reducer.Continued.
		if start, ok := effect.(reducer.StartRequest); ok {
			c.Start = &start
		}
	}
	if c.Start == nil && r.session.Request != nil {
		c.Running = &r.running
	}
	for _, s := range r.inbox.signals {
		if s.append != nil {
			// The update fails with the end of the run, and its sender sends it again.
			s.payloads = s.append.payloads()
		}
		data, err := proto.MarshalOptions{Deterministic: true}.Marshal(s.payloads)
		if err != nil {
			panic(fmt.Sprintf("a signal cannot be written: %v", err))
		}
		c.Inbox = append(c.Inbox, carriedSignal{s.name, data})
	}
	return c
}

func pack(session reducer.Session) []byte {
	packed, err := wire.Pack(session)
	if err != nil {
		panic(err.Error()) // it was checked event by event
	}
	return packed
}

// takeOver begins with what another run has handed over.
func (r *run) takeOver(c *carried) error {
	session, err := wire.Unpack(c.Session)
	if err != nil {
		panic(err.Error())
	}
	if err := r.begin(activities.OpenInput{
		ContextName: r.session.ContextName, ContinuedRunID: workflow.GetInfo(r.ctx).ContinuedExecutionRunID, After: session.EventCount,
		Unarchived: c.Unarchived,
	}); err != nil {
		return err
	}
	session.Rules = r.session.Rules
	r.session = session
	r.updatedAt, r.status, r.turns, r.shownAt = c.UpdatedAt, c.Status, c.Turns, c.ShownAt
	if r.isUnarchived = c.Unarchived; r.isUnarchived {
		r.startArchiving()
	}
	after := r.inbox.signals
	r.inbox.signals, r.inbox.size = nil, 0
	for _, s := range c.Inbox {
		payloads := &commonpb.Payloads{}
		if err := proto.Unmarshal(s.Payloads, payloads); err != nil {
			panic(fmt.Sprintf("a signal that was handed over cannot be read: %v", err))
		}
		r.inbox.put(signal{name: s.Name, payloads: payloads})
	}
	for _, s := range after {
		r.inbox.put(s)
	}
	switch {
	case c.Start != nil:
		r.effects = append(r.effects, *c.Start)
	case c.Running != nil:
		r.running = *c.Running
		r.take(reducer.Continued{At: r.now()})
	}
	return nil
}
