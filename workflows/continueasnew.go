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

// A run continues as new before it reaches a limit of the server. This records no event. The next
// run receives the session and the unprocessed signals, and adopts a running answer: the attempt
// runs detached in its worker process.
//
// If signals arrive during the last workflow task, the server fails that task with UnhandledCommand
// and repeats it. It rejects signals during the second attempt, which therefore succeeds, unless it
// blocks.

const (
	// archiveWait bounds how long pending effects are delayed by the wait for the archive. If that
	// is too short, a later attempt to continue as new finds the archive complete.
	archiveWait        = 250 * time.Millisecond
	maxContinuedInbox  = 24 << 20         // bytes of the backlog in the input of the next run
	floodTaskTimeout   = 30 * time.Second // workflow task timeout of a run that begins with a backlog
	defaultTaskTimeout = 10 * time.Second
	maxUnarchived      = 200 // events that the archive may lag behind
)

// usage is the part of the server's limits that a run has used.
type usage struct {
	entries, bytes   int
	loaded           int // bytes of inputs that Load read; the history has references to them
	signals, updates int
}

func (u usage) reaches(limit usage) bool {
	return u.entries >= limit.entries || u.bytes >= limit.bytes || u.loaded >= limit.loaded || u.signals >= limit.signals || u.updates >= limit.updates
}

// With deploy/dynamicconfig.yaml, the server terminates a run at 51,200 entries or 100 MiB, and
// accepts at most 10,000 signals and 2,000 updates. The limits below leave room for later input. After the
// 16 MiB of urgentLimits, the server can add its full buffer of signals, 32 MiB, twice: once during the task in
// which the run reaches the limit, and once during the first attempt to continue as new. So a history has at
// most 80 MiB, plus the signals that arrive before a task starts.
var (
	// dueLimits apply between two requests. Options.ContinueAfter of the activities overrides
	// entries.
	dueLimits = usage{entries: 4_096, bytes: 4 << 20, loaded: 16 << 20, signals: 3_000, updates: 1_000}
	// overdueLimits apply during an answer; the limit of entries is 1.5 times that of dueLimits.
	overdueLimits = usage{bytes: 6 << 20, loaded: 32 << 20, signals: 3_500, updates: 1_500}
	// urgentLimits apply always, even if the archive lags or the answer must be requested again.
	urgentLimits = usage{entries: 45_000, bytes: 16 << 20, loaded: 48 << 20, signals: 4_000, updates: 1_900}
)

// Signals are a flood if the history grows by floodBytes from one workflow task to the next, or if a task
// receives floodSignalBytes. The second condition is there because the history size that the server reports to
// a task may lack the signals that it buffered during the previous one, although the task receives them.
// floodSignalBytes is larger, as it may include input that the history stores as a reference.
const (
	floodBytes       = 1 << 20
	floodSignalBytes = 4 << 20
)

// task describes the current workflow task.
type task struct {
	// length and size are those of the history at the start of the task, in entries and bytes;
	// grown is how much size grew since the start of the previous task.
	length, size, grown     int
	signalBytes, plainBytes int // growth of inbox.plainBytes in this task, and its value
	recorded                int // bytes of events that the task recorded
	work                    int // approximate time to fold the inputs of the task, in units of 3 µs
}

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

func (r *run) isTaskFull() bool {
	if r.isUrgent() && r.task.work < maxTaskWork {
		return r.task.recorded >= maxLastTaskBytes
	}
	return r.task.recorded >= maxTaskBytes || r.task.work >= maxTaskWork
}

// continuation is the input of a run that continues another.
type continuation struct {
	Session []byte                `json:"session"`           // for wire.Unpack
	Start   *reducer.StartRequest `json:"start,omitempty"`   // not started yet; nil: none
	Running *reducer.StartRequest `json:"running,omitempty"` // nil: none
	// Lost is an earlier attempt of Start, as in [activities.GenerateInput]. Nil: none.
	Lost       *activities.LostAttempt `json:"lost,omitempty"`
	NotStarted []string                `json:"notStarted,omitempty"` // ids of tool calls
	Inbox      []continuedSignal       `json:"inbox,omitempty"`      // unprocessed, oldest first
	UpdatedAt  time.Time               `json:"updatedAt,omitzero"`
	Unarchived bool                    `json:"unarchived,omitempty"` // the archive may lack earlier events
	// Status and Turns are the search attributes, set at ShownAt.
	Status  wire.Status `json:"status,omitempty"`
	Turns   int         `json:"turns,omitempty"`
	ShownAt time.Time   `json:"shownAt,omitzero"`
	Trace   *traces     `json:"trace,omitempty"` // nil: no input or attempt has a trace
}

// continuedSignal is an unprocessed signal. Payloads is a serialized
// temporal.api.common.v1.Payloads.
type continuedSignal struct {
	Name     string `json:"name"`
	Payloads []byte `json:"payloads,omitempty"`
	Trace    string `json:"trace,omitempty"` // traceparent of the sender
}

// decodeContinuation returns nil for a run that continues no other.
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

func (r *run) usage() usage {
	info := workflow.GetInfo(r.ctx)
	return usage{info.GetCurrentHistoryLength(), info.GetCurrentHistorySize(), r.loadedBytes, r.inbox.signalled, r.inbox.updated}
}

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
	case len(r.calls) > 0:
		return false // the next run does not receive their results
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

func (r *run) canContinue() bool {
	return !r.calls.areAwaited() && (r.answer.future == nil || r.isAdoptable())
}

// isUrgent reports whether the run must continue as new as soon as it can.
func (r *run) isUrgent() bool {
	now := r.usage()
	now.bytes += r.task.signalBytes // which the server may not have counted
	return now.reaches(urgentLimits) || r.isFlooded()
}

// isFlooded reports whether signals arrive so fast that the run continues as new early: the server
// accepts more of them before each further task.
func (r *run) isFlooded() bool {
	isFlood := r.task.grown >= floodBytes || r.task.signalBytes >= floodSignalBytes
	return isFlood && r.canContinue()
}

// continuesAtOnce reports whether the run leaves its inbox to the next run. A shorter task admits
// fewer signals.
func (r *run) continuesAtOnce() bool {
	return r.isDue() && r.isUrgent() && r.inbox.size <= maxContinuedInbox && r.canContinue()
}

// continueAsNew returns the error that starts the next run, or nil if this one has other work to do
// first.
func (r *run) continueAsNew() error {
	if !r.isUrgent() && !r.isArchived() {
		return nil
	}
	// Updates whose events are recorded return their results first.
	r.await(func() bool { return r.appends.unanswered == 0 })
	r.awaitAdopted()
	if r.inbox.hasUpdate() && !r.isUrgent() || r.hasResult() || r.isInboxTooLarge() || r.isCancelled() {
		return nil // process those first
	}
	r.measureContinuation()
	ctx := workflow.WithWorkflowTaskTimeout(r.ctx, r.taskTimeout())
	return workflow.NewContinueAsNewError(ctx, wire.WorkflowType, r.continuation())
}

func (r *run) measureContinuation() {
	if workflow.IsReplaying(r.ctx) {
		return
	}
	used := r.usage()
	r.log(line{info, "run continues as new", []any{"history_events", used.entries, "history_bytes", used.bytes}})
	r.metrics.Continuations.Add(1)
	r.metrics.HistoryEvents.Observe(float64(used.entries))
	r.metrics.HistoryBytes.Observe(float64(used.bytes))
	lag, delay := r.session.EventCount-r.archived.complete.through, time.Duration(0)
	if lag > 0 {
		delay = r.now().Sub(r.archived.complete.at)
	}
	r.metrics.ArchiveLag.Observe(float64(lag))
	r.metrics.ArchiveDelay.Observe(delay.Seconds())
}

// isInboxTooLarge reports whether the run must record signals before it continues as new. An urgent
// run does so in one workflow task only: the server accepts more signals before each further task.
func (r *run) isInboxTooLarge() bool {
	return r.inbox.size > maxContinuedInbox && !(r.isUrgent() && r.isTaskFull())
}

// taskTimeout is the workflow task timeout of the next run. It is longer after an urgent run: when a
// task times out, the server accepts more signals, and the retry starts from an empty cache.
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

// isArchived reports whether the archive lags so little that the next run can complete it. If not,
// it archives in the background, and waits up to archiveWait. A run that has archived nothing continues
// as new only if it is urgent: the store may be unavailable, and the next run could not open.
func (r *run) isArchived() bool {
	if r.archived.running == nil && !r.isArchivedEnough(r.archived.through) {
		r.startArchiving()
		_, _ = workflow.AwaitWithTimeout(r.ctx, archiveWait, r.archived.running.IsReady)
	}
	if r.archived.running != nil && r.archived.running.IsReady() {
		if r.archived.running.Get(r.ctx, nil) == nil {
			r.archived.through, r.archived.isIncomplete = r.archived.next.through, false
			r.archived.complete = r.archived.next
		}
		r.archived.running = nil
	}
	return r.isArchivedEnough(r.archived.through)
}

func (r *run) startArchiving() {
	r.archived.running, r.archived.next = r.archive(r.ctx), r.position()
}

func (r *run) position() position { return position{r.session.EventCount, r.now()} }

// An overdue run may lag by more than maxUnarchived.
func (r *run) isArchivedEnough(through int) bool {
	return through > 0 && (r.isOverdue() || r.session.EventCount-through <= maxUnarchived)
}

func (r *run) archive(ctx workflow.Context) workflow.Future {
	options := workflow.GetActivityOptions(ctx)
	options.StartToCloseTimeout, options.HeartbeatTimeout = activities.ArchiveTimeout, activities.HeartbeatTimeout
	options.RetryPolicy = &temporal.RetryPolicy{InitialInterval: 100 * time.Millisecond, MaximumInterval: 5 * time.Second}
	options.Summary = "archive up to " + r.session.LastEventID()
	return workflow.ExecuteActivity(workflow.WithActivityOptions(r.traced(ctx), options), acts.Archive,
		activities.ArchiveInput{ContextName: r.session.ContextName, Through: r.session.EventCount, Earlier: r.archived.isIncomplete})
}

// archiveEndedSession waits for the archive without a time limit, but returns when new input
// arrives.
func (r *run) archiveEndedSession() {
	ctx, cancel := workflow.WithCancel(r.ctx)
	defer cancel()
	done := r.archive(ctx)
	r.await(func() bool { return done.IsReady() || !r.inbox.empty() })
}

func (r *run) continuation() continuation {
	c := continuation{Session: pack(r.session), UpdatedAt: r.updatedAt, Status: r.visibility.status, Turns: r.visibility.turns, ShownAt: r.visibility.updatedAt}
	c.Trace = r.trace.kept()
	c.Unarchived = r.archived.isIncomplete || r.isOverdue() || r.isUrgent()
	for _, effect := range r.pending.effects {
		// The session determines all other effects, see reducer.Continued.
		switch effect := effect.(type) {
		case reducer.StartRequest:
			c.Start, c.Lost = &effect, r.lostBefore(effect)
		case reducer.CallTool:
			c.NotStarted = append(c.NotStarted, effect.Call.ID)
		}
	}
	if c.Start == nil && r.session.Request != nil {
		c.Running = &r.answer.start
	}
	for _, s := range r.inbox.signals {
		if s.append.expire(r.now()) {
			continue
		}
		if s.append != nil {
			s.payloads = s.append.payloads() // the update fails with the run, and its sender repeats it
		}
		data, err := proto.MarshalOptions{Deterministic: true}.Marshal(s.payloads)
		if err != nil {
			panic(fmt.Sprintf("encode signal %s: %v", s.name, err))
		}
		c.Inbox = append(c.Inbox, continuedSignal{s.name, data, s.trace})
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

func (r *run) restore(c *continuation) error {
	session, err := wire.Unpack(c.Session)
	if err != nil {
		panic(err.Error())
	}
	if c.Trace != nil {
		r.trace = *c.Trace
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
	} else {
		r.archived.complete = r.position()
	}
	after := r.inbox.signals
	r.inbox.signals, r.inbox.size = nil, 0
	for _, s := range c.Inbox {
		payloads := &commonpb.Payloads{}
		if err := proto.Unmarshal(s.Payloads, payloads); err != nil {
			panic(fmt.Sprintf("decode signal %s of the previous run: %v", s.Name, err))
		}
		r.inbox.put(signal{name: s.Name, payloads: payloads, trace: s.Trace})
	}
	for _, s := range after {
		r.inbox.put(s)
	}
	switch {
	case c.Start != nil:
		r.pending.effects = append(r.pending.effects, *c.Start)
		r.answer.start, r.answer.lost = *c.Start, c.Lost
	case c.Running != nil:
		r.answer.start = *c.Running
		r.apply(reducer.Continued{At: r.now(), NotStarted: c.NotStarted})
	}
	return nil
}
