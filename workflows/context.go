package workflows

import (
	"fmt"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/metrics"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

const workflowType = wire.WorkflowType

// Options configure the workflow of a worker.
type Options struct {
	// Reduce folds events into the state that the model receives. Nil: [reducer.Reduce].
	// A reducer that folds old events differently changes what the model sees of open contexts.
	Reduce reducer.Reducer
	// Sessions is shared with the activities of this process. Nil: Generate queries the workflow.
	Sessions *activities.Sessions
	// StoreID identifies the worker's blob store. Workflow tasks of contexts of another store fail.
	// Empty: no check.
	StoreID string
	Meters  metric.MeterProvider // records metrics; nil: none. For its views, see client.Config.
}

// Context is the workflow with the default options. The workflow id contains the name of the
// context. Only a run that continues another has an input.
func Context(ctx workflow.Context, input converter.RawValue) error { return New(Options{})(ctx, input) }

// New returns [Context] with options. Register it as [wire.WorkflowType].
func New(options Options) func(workflow.Context, converter.RawValue) error {
	reduce := options.Reduce
	if reduce == nil {
		reduce = reducer.Reduce
	}
	return newWorkflow(reducer.NewStepper(reduce), options)
}

func newWorkflow(step reducer.Stepper, options Options) func(workflow.Context, converter.RawValue) error {
	measured := metrics.New(options.Meters)
	return func(ctx workflow.Context, input converter.RawValue) error {
		r, err := newRun(ctx, step)
		if err != nil {
			return err
		}
		r.sessions, r.storeID, r.metrics = options.Sessions, options.StoreID, measured
		defer func() {
			if r.attempt.future != nil {
				r.attempt.drop()
			}
		}()
		c, err := decodeContinuation(workflow.GetInfo(ctx), input)
		if err != nil {
			panic(err.Error()) // fails the workflow task, so no input is lost
		}
		return r.loop(c)
	}
}

// acts is the typed nil receiver for activity calls.
var acts *activities.Activities

type run struct {
	// ctx outlives cancellation of the workflow; cancellable is cancelled with it. isClosing means
	// that the run has asked the session to close because of the cancellation. A running request is interrupted,
	// and the session ends when its result arrives.
	ctx, cancellable workflow.Context
	isClosing        bool
	isDeleted        bool // a deletion has closed the session, and deletes later input

	step    reducer.Stepper
	inbox   *inbox
	loading workflow.Future // of the reference at the head of inbox; nil: none

	loadedBytes int    // of inputs that Load has read
	name        string // of the context
	storeID     string // Options.StoreID
	metrics     *metrics.Metrics

	session   reducer.Session
	updatedAt time.Time // the last change of session
	sessions  *activities.Sessions

	opened       activities.OpenResult // settings of the run; its Session is empty
	registration registration
	task         task
	pending      pending
	appends      appends
	taken        taken
	attempt      attempt
	ended        *endedAttempt // nil: none
	isHandedBack bool          // a stopping worker has handed back the newest attempt
	calls        toolCalls
	wake         wake
	archived     archived
	deliveries   deliveries
	shown        shown
	trace        traces
	cause        string            // traceparent of the input that is being applied; empty: none
	callers      map[string]caller // of the tool calls without a result, by call id, for the log
}

type registration struct {
	isDone        bool
	historyLength int // length when this run, or its base run, registered after a reset; 0: neither did
}

// pending holds results of one iteration of the loop.
type pending struct {
	events  []pendingEvent // not recorded yet
	bytes   int            // size of events
	effects []any          // a [scheduledAttempt] for each [reducer.StartAttempt], and other effects as they are
}

type appends struct {
	pending    []*pendingAppend // their events are not recorded yet
	unanswered int              // recorded appends whose handlers have not returned
}

func newRun(ctx workflow.Context, step reducer.Stepper) (*run, error) {
	info := workflow.GetInfo(ctx)
	name, ok := wire.ContextName(info.WorkflowExecution.ID)
	if !ok {
		return nil, temporal.NewNonRetryableApplicationError(fmt.Sprintf(
			"workflow id %q: a context has the id %q with a name of 1-%d of A-Z a-z 0-9 . _ -, first a letter or digit",
			info.WorkflowExecution.ID, wire.WorkflowID("NAME"), event.MaxContextName), "InvalidContextName", nil)
	}
	box, ok := ctx.Value(inboxKey{}).(*inbox)
	if !ok {
		// Fails the workflow task, so no input is lost.
		panic("workflows.Interceptor() is missing in the interceptors of the worker")
	}
	detached, _ := workflow.NewDisconnectedContext(ctx)
	r := &run{
		ctx: detached, cancellable: ctx, step: step, inbox: box, name: name, session: reducer.NewSession(name),
		trace: traces{Parent: received(ctx)}, cause: received(ctx), callers: map[string]caller{},
	}
	return r, r.setHandlers(ctx)
}

func (r *run) setHandlers(ctx workflow.Context) error {
	if err := workflow.SetQueryHandler(ctx, wire.QueryState, func() (wire.State, error) {
		return wire.StateOf(r.session, r.updatedAt), nil
	}); err != nil {
		return err
	}
	if err := workflow.SetQueryHandler(ctx, wire.QueryDelivery, r.delivery); err != nil {
		return err
	}
	if err := workflow.SetUpdateHandlerWithOptions(ctx, wire.UpdateAppend, r.append, workflow.UpdateHandlerOptions{
		Validator: r.validateAppend, Description: "takes an event, or an array of them, and returns their ids in the log",
	}); err != nil {
		return err
	}
	return workflow.SetQueryHandler(ctx, wire.QuerySnapshot, r.snapshot)
}

func (r *run) delivery(clientEventIDs []string) (wire.Delivery, error) {
	// A run that has not opened its session does not know earlier events.
	isPending := r.session.EventCount == 0 || !r.inbox.empty() || len(r.pending.events) > 0
	return wire.DeliveryOf(r.session, isPending, clientEventIDs), nil
}

// loop runs until the session has ended or the run continues as new.
func (r *run) loop(c *continuation) error {
	begin := r.open
	if c != nil {
		begin = func() error { return r.restore(c) }
	}
	if err := begin(); err != nil {
		return err
	}
	for {
		if err := r.perform(); err != nil {
			return err
		}
		if r.session.Ended {
			r.archiveEndedSession()
			r.awaitEnd()
			if r.inbox.empty() {
				return nil
			}
		}
		r.await(func() bool {
			return r.hasInput() || r.hasResult() || r.isCancelled()
		})
		r.observeTask()
		r.receive()
	}
}

func (r *run) hasResult() bool {
	return r.attempt.isReady() || r.calls.isReady() || r.wake.isReady() || r.deliveries.isReady()
}

// receive applies the inbox in order, up to maxTaskBytes, and then the results of activities. A run that must
// continue as new applies results even if signals remain: the next run does not receive these results.
func (r *run) receive() {
	for r.hasInput() && r.pending.bytes < maxTaskBytes && r.task.work < maxTaskWork && !r.leavesInbox() && r.load() {
		r.task.work += 1 + len(r.session.Reduced.Messages)/messagesPerWork
		in := r.inbox.take()
		origin := in.origin // a pointer to the field would keep the payloads in memory
		r.taken.now = &origin
		if in.append.expire(r.now()) {
			r.appends.pending = append(r.appends.pending, in.append)
			continue
		}
		if r.isDeleted {
			r.discard(in)
			continue
		}
		in.append.findKnown(r.session)
		r.trace.receive(in)
		r.cause = in.trace
		r.apply(decode(in, r.now()))
		if in.append != nil {
			r.appends.pending = append(r.appends.pending, in.append.resolve(r.session, r.pending.events))
		}
		r.isDeleted = in.name == wire.SignalClose && decodeClose(in).IsDeletion
	}
	r.cause = ""
	if !r.hasInput() || r.limit() == now {
		r.receiveResults()
	}
	if r.isCancelled() {
		r.isClosing = true
		r.apply(reducer.CloseAsked{At: r.now(), Reason: "the workflow was cancelled"})
	}
}

// discard leaves an update to its sender, who starts the next run with it when this one has ended.
func (r *run) discard(in signal) {
	if in.append != nil {
		in.append.err = appendError(wire.ErrorDeleting, "the context is being deleted")
		r.appends.pending = append(r.appends.pending, in.append)
	}
}

func (r *run) receiveResults() {
	if r.attempt.isReady() {
		r.apply(r.endAttempt())
	}
	r.endCalls()
	r.endDeliveries()
	if r.wake.isReady() {
		r.woken()
	}
}

// isCancelled reports whether the workflow was cancelled and the session is to be closed.
func (r *run) isCancelled() bool { return r.cancellable.Err() != nil && !r.isClosing }

func (r *run) now() time.Time { return workflow.Now(r.ctx) }

func (r *run) apply(in reducer.Input) {
	var effects []reducer.Effect
	r.session, effects = r.step(r.session, in)
	for _, effect := range effects {
		switch effect := effect.(type) {
		case reducer.Record:
			for _, e := range effect.Events {
				p := newPendingEvent(e)
				p.trace, p.turn = r.cause, r.traceOf(event.RequestOf(e.Body))
				r.pending.events = append(r.pending.events, p)
				r.pending.bytes += p.size()
			}
		case reducer.StartAttempt:
			r.pending.effects = append(r.pending.effects, scheduledAttempt{effect, r.session, r.trace.begin(effect)})
		default:
			r.pending.effects = append(r.pending.effects, effect)
		}
	}
}

func (r *run) perform() error {
	r.recordPending()
	r.updateVisibility()
	if err := r.continueAsNew(); err != nil {
		return err
	}
	r.performEffects()
	r.deliver()
	if r.observeTask(); r.isTaskFull() {
		endTask(r.ctx)
	}
	return nil
}

func (r *run) recordPending() {
	if len(r.pending.events) > 0 {
		r.updatedAt = r.pending.events[len(r.pending.events)-1].Timestamp
		record(r.ctx, r.pending.events, r.taken.next(), r.register)
		r.logEvents(r.pending.events)
		r.observeTask()
		r.task.recorded += r.pending.bytes
		r.pending.events, r.pending.bytes = nil, 0
	}
	for _, a := range r.appends.pending {
		a.isRecorded = true
		if !a.isAbandoned {
			r.appends.unanswered++
		}
	}
	r.appends.pending = nil
}

func (r *run) performEffects() {
	effects := r.pending.effects
	r.pending.effects = nil
	for _, effect := range effects {
		switch effect := effect.(type) {
		case scheduledAttempt:
			r.startAttempt(effect)
		case reducer.StopAttempt:
			r.stopAttempt(effect)
		case reducer.CallTool:
			r.callTool(effect)
		case reducer.CancelTools:
			r.cancelTools(effect)
		case reducer.WakeAt:
			r.wakeAt(effect)
		}
	}
	r.attempt.isNew = false
}

// await waits for a condition. It registers a run that was reset in the meantime.
func (r *run) await(condition func() bool) {
	for {
		// The error is nil: ctx is never cancelled.
		_ = workflow.Await(r.ctx, func() bool { return r.isReset() || condition() })
		if !r.isReset() {
			return
		}
		r.register(r.session.EventCount - len(r.pending.events))
	}
}
