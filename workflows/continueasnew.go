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

// A run continues as new before it reaches a limit of the server. Its events are archived,
// and the input of the next run contains the session and the unprocessed signals. This
// records no event.
//
// Between two requests is the best time. If an answer takes too long for that, the next
// run adopts it: the attempt runs detached in its worker process.
//
// When signals arrive during the last workflow task, the server fails that task with
// UnhandledCommand, and repeats it. It refuses signals during the second attempt, which
// therefore succeeds, unless it blocks.

const (
	// archiveWait bounds how long a run waits for the archive before it continues with
	// pending effects. The activity continues, and a later attempt finds it completed.
	archiveWait = 250 * time.Millisecond
	// maxContinuedInbox is the size of the backlog, in bytes, that the next run
	// receives with its input.
	maxContinuedInbox = 24 << 20
	// floodTaskTimeout is the workflow task timeout of a run that begins with a backlog
	// of signals; defaultTaskTimeout is that of Temporal.
	floodTaskTimeout   = 30 * time.Second
	defaultTaskTimeout = 10 * time.Second
	// maxUnarchived is how many events the archive may lag behind.
	maxUnarchived = 200
)

// usage is what a run has used of the limits of the server.
type usage struct {
	entries, bytes   int
	signals, updates int
}

// reaches reports whether one of the numbers is at its limit.
func (u usage) reaches(limit usage) bool {
	return u.entries >= limit.entries || u.bytes >= limit.bytes || u.signals >= limit.signals || u.updates >= limit.updates
}

// With deploy/dynamicconfig.yaml, the server terminates a run at 51,200 entries or 100 MiB,
// and rejects signals from 10,000 and updates from 2,000. The limits below leave room for
// input that arrives before the run ends. For bytes, the room is two server buffers of
// 32 MiB: one for the task in which the run becomes urgent, one for the first attempt to
// continue as new. A history therefore has at most 80 MiB, plus the signals that arrive
// before a worker starts a task.
var (
	// dueLimits apply between two requests. A setting can override entries.
	dueLimits = usage{entries: 4_096, bytes: 4 << 20, signals: 3_000, updates: 1_000}
	// overdueLimits apply during an answer; entries are half as many again.
	overdueLimits = usage{bytes: 6 << 20, signals: 3_500, updates: 1_500}
	// urgentLimits apply always, even if the archive lags behind or the answer has to
	// be requested again.
	urgentLimits = usage{entries: 45_000, bytes: 16 << 20, signals: 4_000, updates: 1_900}
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
	// length and size are those of the history at the start of the task; grown is the
	// growth of size since the start of the previous one.
	length, size, grown int
	// signalBytes is how many bytes of signals arrived with the task, and plainBytes
	// how many with the run.
	signalBytes, plainBytes int
	// recorded is how many bytes of events the task has recorded.
	recorded int
}

// observeTask updates r.task if a new workflow task has begun.
func (r *run) observeTask() {
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

// isTaskFull reports whether the workflow task has recorded as many bytes as allowed.
func (r *run) isTaskFull() bool {
	if r.isUrgent() {
		return r.task.recorded >= maxLastTaskBytes
	}
	return r.task.recorded >= maxTaskBytes
}

// continuation is the input of a run that continues another.
type continuation struct {
	// Session is the session, packed.
	Session []byte `json:"session"`
	// Start is a request that has not been started yet. Nil: none.
	Start *reducer.StartRequest `json:"start,omitempty"`
	// Running is the running request. Nil: none.
	Running *reducer.StartRequest `json:"running,omitempty"`
	// NotStarted are the ids of tool calls that have not been started yet.
	NotStarted []string `json:"notStarted,omitempty"`
	// Inbox contains the unprocessed signals, oldest first.
	Inbox     []continuedSignal `json:"inbox,omitempty"`
	UpdatedAt time.Time         `json:"updatedAt,omitzero"`
	// Unarchived: the archive may lack events of earlier runs.
	Unarchived bool `json:"unarchived,omitempty"`
	// Status, Turns and ShownAt are the search attributes and when they were set.
	Status  wire.Status `json:"status,omitempty"`
	Turns   int         `json:"turns,omitempty"`
	ShownAt time.Time   `json:"shownAt,omitzero"`
}

// continuedSignal is an unprocessed signal. Payloads is a serialized
// temporal.api.common.v1.Payloads.
type continuedSignal struct {
	Name     string `json:"name"`
	Payloads []byte `json:"payloads,omitempty"`
}

// decodeContinuation returns the input of a run that continues another, and nil for any
// other run.
func decodeContinuation(info *workflow.Info, input converter.RawValue) (*continuation, error) {
	if info.ContinuedExecutionRunID == "" {
		return nil, nil
	}
	c := &continuation{}
	if err := json.Unmarshal(input.Payload().GetData(), c); err != nil {
		return nil, fmt.Errorf("decode the input of a run that continues another: %w", err)
	}
	return c, nil
}

// usage returns that of this run.
func (r *run) usage() usage {
	info := workflow.GetInfo(r.ctx)
	return usage{info.GetCurrentHistoryLength(), info.GetCurrentHistorySize(), r.inbox.signalled, r.inbox.updated}
}

// isDue reports whether it is time to continue as new.
func (r *run) isDue() bool {
	now, long := r.usage(), dueLimits
	if r.opened.continueAfter > 0 {
		long.entries = r.opened.continueAfter
	}
	switch {
	case r.session.Ended:
		return false
	case r.isUrgent():
		return true
	case r.calls.areAwaited():
		return false // the next run cannot adopt them
	case r.answer.future == nil:
		return now.reaches(long) || workflow.GetInfo(r.ctx).GetContinueAsNewSuggested()
	default:
		return r.isOverdue() && r.isAdoptable()
	}
}

// isOverdue reports whether the run should continue as new even during an answer.
func (r *run) isOverdue() bool {
	overdue := overdueLimits
	overdue.entries = dueLimits.entries
	if r.opened.continueAfter > 0 {
		overdue.entries = r.opened.continueAfter
	}
	overdue.entries += overdue.entries / 2
	return r.usage().reaches(overdue)
}

// isAdoptable reports whether the next run can adopt the running answer.
func (r *run) isAdoptable() bool {
	request := r.session.Request
	return request != nil && request.Worker != "" && request.Through != "" && request.Stop == "" &&
		len(r.pending.effects) == 0 && !r.answer.future.IsReady()
}

// canContinue reports whether the next run can complete the calls and the attempt of this run.
func (r *run) canContinue() bool {
	return !r.calls.areAwaited() && (r.answer.future == nil || r.isAdoptable())
}

// isUrgent reports whether the run must continue as new without delay.
func (r *run) isUrgent() bool {
	now := r.usage()
	now.bytes += r.task.signalBytes // which the server may not have counted
	return now.reaches(urgentLimits) || r.isFlooded()
}

// isFlooded reports whether signals arrive so fast that the run continues as new early:
// the server accepts more of them before each further task.
func (r *run) isFlooded() bool {
	isFlood := r.task.grown >= floodBytes || r.task.signalBytes >= floodSignalBytes
	return isFlood && r.canContinue()
}

// continuesAtOnce reports whether the run continues as new without processing its inbox.
// A shorter task admits fewer signals.
func (r *run) continuesAtOnce() bool {
	return r.isDue() && r.isUrgent() && r.inbox.size <= maxContinuedInbox && r.canContinue()
}

// continueAsNew returns the error that ends the run and starts the next one, or nil if the
// run has to do something else first.
func (r *run) continueAsNew() error {
	if !r.isUrgent() && !r.isArchived() {
		return nil
	}
	// Updates with recorded events return their results first.
	r.await(func() bool { return r.appends.unanswered == 0 })
	r.awaitAdopted()
	if r.inbox.hasUpdate() && !r.isUrgent() || r.hasResult() || r.isInboxTooLarge() || r.isCancelled() {
		return nil // process it first
	}
	ctx := workflow.WithWorkflowTaskTimeout(r.ctx, r.taskTimeout())
	return workflow.NewContinueAsNewError(ctx, wire.WorkflowType, r.continuation())
}

// isInboxTooLarge reports whether the run records signals before it continues as new.
// An urgent run does so for one workflow task: the server accepts more signals
// before each further task.
func (r *run) isInboxTooLarge() bool {
	return r.inbox.size > maxContinuedInbox && !(r.isUrgent() && r.isTaskFull())
}

// taskTimeout is the workflow task timeout of the next run. A task that times out lets
// the server accept more signals, and its repetition starts from an empty cache.
func (r *run) taskTimeout() time.Duration {
	switch current := workflow.GetInfo(r.ctx).WorkflowTaskTimeout; {
	case r.isUrgent():
		return max(current, floodTaskTimeout)
	case current == floodTaskTimeout:
		return defaultTaskTimeout
	default:
		return current
	}
}

// isArchived reports whether the archive lags behind by at most maxUnarchived events,
// which the next run archives. Otherwise it archives in the background. An overdue run
// may lag by more. While the store is unavailable, no run can open, so none continues
// as new.
func (r *run) isArchived() bool {
	if r.archived.running == nil && !r.isArchivedEnough(r.archived.through) {
		r.startArchiving()
		_, _ = workflow.AwaitWithTimeout(r.ctx, archiveWait, r.archived.running.IsReady)
	}
	if r.archived.running != nil && r.archived.running.IsReady() {
		if r.archived.running.Get(r.ctx, nil) == nil {
			r.archived.through, r.archived.isIncomplete = r.archived.runningThrough, false
		}
		r.archived.running = nil
	}
	return r.isArchivedEnough(r.archived.through)
}

// startArchiving archives the log up to now in the background.
func (r *run) startArchiving() {
	r.archived.running, r.archived.runningThrough = r.archive(r.ctx), r.session.EventCount
}

// isArchivedEnough reports whether the next run can archive the events after through.
func (r *run) isArchivedEnough(through int) bool {
	return through > 0 && (r.isOverdue() || r.session.EventCount-through <= maxUnarchived)
}

// archive starts the Archive activity for the log up to now.
func (r *run) archive(ctx workflow.Context) workflow.Future {
	options := workflow.GetActivityOptions(ctx)
	options.StartToCloseTimeout, options.HeartbeatTimeout = activities.ArchiveTimeout, activities.HeartbeatTimeout
	options.RetryPolicy = &temporal.RetryPolicy{InitialInterval: 100 * time.Millisecond, MaximumInterval: 5 * time.Second}
	options.Summary = "archive up to " + r.session.LastEventID()
	return workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, options), acts.Archive,
		activities.ArchiveInput{ContextName: r.session.ContextName, Through: r.session.EventCount, Earlier: r.archived.isIncomplete})
}

// archiveEndedSession archives the log without a time limit, but returns when new input
// arrives.
func (r *run) archiveEndedSession() {
	ctx, cancel := workflow.WithCancel(r.ctx)
	defer cancel()
	done := r.archive(ctx)
	r.await(func() bool { return done.IsReady() || !r.inbox.empty() })
}

// continuation returns the input of the next run.
func (r *run) continuation() continuation {
	c := continuation{Session: pack(r.session), UpdatedAt: r.updatedAt, Status: r.visibility.status, Turns: r.visibility.turns, ShownAt: r.visibility.updatedAt}
	c.Unarchived = r.archived.isIncomplete || r.isOverdue() || r.isUrgent()
	for _, effect := range r.pending.effects {
		// The session determines all other effects, see reducer.Continued.
		switch effect := effect.(type) {
		case reducer.StartRequest:
			c.Start = &effect
		case reducer.CallTool:
			c.NotStarted = append(c.NotStarted, effect.Call.ID)
		}
	}
	if c.Start == nil && r.session.Request != nil {
		c.Running = &r.answer.start
	}
	for _, s := range r.inbox.signals {
		if s.append != nil {
			// The update fails when the run ends, and its sender repeats it.
			s.payloads = s.append.payloads()
		}
		data, err := proto.MarshalOptions{Deterministic: true}.Marshal(s.payloads)
		if err != nil {
			panic(fmt.Sprintf("encode signal %s: %v", s.name, err))
		}
		c.Inbox = append(c.Inbox, continuedSignal{s.name, data})
	}
	return c
}

func pack(session reducer.Session) []byte {
	packed, err := wire.Pack(session)
	if err != nil {
		panic(err.Error()) // each event was validated
	}
	return packed
}

// restore begins a run that continues another.
func (r *run) restore(c *continuation) error {
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
	r.updatedAt, r.visibility.status, r.visibility.turns, r.visibility.updatedAt = c.UpdatedAt, c.Status, c.Turns, c.ShownAt
	if r.archived.isIncomplete = c.Unarchived; r.archived.isIncomplete {
		r.startArchiving()
	}
	after := r.inbox.signals
	r.inbox.signals, r.inbox.size = nil, 0
	for _, s := range c.Inbox {
		payloads := &commonpb.Payloads{}
		if err := proto.Unmarshal(s.Payloads, payloads); err != nil {
			panic(fmt.Sprintf("decode signal %s of the previous run: %v", s.Name, err))
		}
		r.inbox.put(signal{name: s.Name, payloads: payloads})
	}
	for _, s := range after {
		r.inbox.put(s)
	}
	switch {
	case c.Start != nil:
		r.pending.effects = append(r.pending.effects, *c.Start)
	case c.Running != nil:
		r.answer.start = *c.Running
		r.apply(reducer.Continued{At: r.now(), NotStarted: c.NotStarted})
	}
	return nil
}
