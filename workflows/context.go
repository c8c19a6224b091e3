package workflows

import (
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/metrics"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

const workflowType = wire.WorkflowType

// Options configure the workflow of a worker.
type Options struct {
	// Reduce folds events into the state that the model receives. Nil: [reducer.Reduce].
	// A reducer that folds old events differently changes what the model sees of open contexts.
	Reduce reducer.Reducer
	// Cache is shared with the activities of this process. Nil: Generate queries the workflow.
	Cache *activities.SessionCache
	// StoreID identifies the worker's blob store. Workflow tasks of contexts of another store fail.
	// Empty: no check.
	StoreID string
	Meters  metric.MeterProvider // records metrics; nil: none. For its views, see worker/contexts.Options.
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
		r, err := newRun(ctx, step, options.Cache)
		if err != nil {
			return err
		}
		r.storeID, r.metrics = options.StoreID, measured
		defer r.cacheEntry.Remove()
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

	step    reducer.Stepper
	inbox   *inbox
	loading workflow.Future // of the reference at the head of inbox; nil: none

	loadedBytes int    // of inputs that Load has read
	name        string // of the context
	storeID     string // Options.StoreID
	metrics     *metrics.Metrics

	// session is empty while isReleased: query handlers and coroutines must use currentSession.
	session    reducer.Session
	updatedAt  time.Time // the last change of session
	cacheEntry *activities.CacheEntry
	isReleased bool

	opened       opened
	registration registration
	task         task
	pending      pending
	appends      appends
	answer       answer
	calls        toolCalls
	wake         wake
	archived     archived
	deliveries   deliveries
	visibility   visibility
	trace        traces
	cause        string            // traceparent of the input that is being applied; empty: none
	callers      map[string]caller // of the tool calls without a result, by call id, for the log
}

// opened holds results of Open, fixed for a run.
type opened struct {
	rules                     reducer.Rules // of the session; before Open, [reducer.CurrentRules]
	continueAfter             int           // in history entries; 0: the default
	defaultModel              string
	previousRunID, forkedFrom string
}

type registration struct {
	isDone        bool
	historyLength int // length when this run, or its base run, registered after a reset; 0: neither did
}

// pending holds results of one iteration of the loop.
type pending struct {
	events  []pendingEvent // not recorded yet
	bytes   int            // size of events
	effects []reducer.Effect
}

type appends struct {
	pending    []*pendingAppend // their events are not recorded yet
	unanswered int              // recorded appends whose handlers have not returned
	validated  validated
}

// answer is the running Generate activity.
type answer struct {
	future  workflow.Future // nil: no request is running
	cancel  workflow.CancelFunc
	start   reducer.StartRequest
	attempt workflow.Future         // that the coroutine of adoptRequest awaits; nil: none
	lost    *activities.LostAttempt // of the previous activity of the same request; nil: none
}

type archived struct {
	through      int             // counter of the last event that this run archived
	running      workflow.Future // the Archive activity, up to next. Nil: none
	next         position
	complete     position // up to which the archive is known to be complete, for metrics; zero: unknown
	isIncomplete bool     // events of earlier runs may be missing
}

// position is the end of the log at some time.
type position struct {
	through int // counter of the newest event
	at      time.Time
}

// visibility is what the search attributes show.
type visibility struct {
	isEnabled bool
	// showsWaiting allows the status wire.StatusWaiting, see [activities.OpenResult].
	showsWaiting bool
	status       wire.Status
	turns        int
	updatedAt    time.Time
}

func newRun(ctx workflow.Context, step reducer.Stepper, cache *activities.SessionCache) (*run, error) {
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
		ctx: detached, cancellable: ctx, step: step, inbox: box, cacheEntry: cache.Entry(info.WorkflowExecution.RunID),
		name: name, session: reducer.NewSession(name), opened: opened{rules: reducer.CurrentRules},
		trace: traces{Parent: received(ctx)}, cause: received(ctx), callers: map[string]caller{},
	}
	return r, r.setHandlers(ctx)
}

func (r *run) setHandlers(ctx workflow.Context) error {
	if err := workflow.SetQueryHandler(ctx, wire.QueryState, func() (wire.State, error) {
		session, err := r.currentSession()
		return wire.StateOf(session, r.updatedAt), err
	}); err != nil {
		return err
	}
	if err := workflow.SetQueryHandler(ctx, wire.QueryStopCheck, func() (wire.StopCheck, error) {
		session, err := r.currentSession()
		return wire.StopCheckOf(session), err
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
	session, err := r.currentSession()
	if err != nil {
		return wire.Delivery{}, err
	}
	// A run that has not opened its session does not know earlier events.
	isPending := session.EventCount == 0 || !r.inbox.empty() || len(r.pending.events) > 0
	return wire.DeliveryOf(session, isPending, clientEventIDs), nil
}

func (r *run) snapshot() (reducer.Session, error) {
	session, err := r.currentSession()
	if err != nil {
		return reducer.Session{}, err
	}
	if !wire.Fits(session) {
		return reducer.Session{}, errors.New("the session is too large for the answer to a query: read the log")
	}
	session.Recent = nil // a request does not need it
	return session, nil
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
	if c != nil && c.Running != nil && !r.inbox.empty() {
		// Adopt the answer before the backlog, which takes several tasks.
		if err := r.perform(); err != nil {
			return err
		}
		endTask(r.ctx)
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
		r.releaseSession()
		r.await(func() bool {
			return r.hasInput() || r.hasResult() || r.isCancelled()
		})
		r.acquireSession()
		r.observeTask()
		r.receive()
	}
}

// releaseSession moves the session to the cache, which bounds the memory of idle contexts.
func (r *run) releaseSession() {
	r.cacheEntry.Release(r.session)
	r.session, r.isReleased = reducer.Session{}, true
}

func (r *run) acquireSession() {
	session, err := r.cacheEntry.Acquire()
	if err != nil {
		panic(err.Error()) // the run is replayed from its history
	}
	r.session, r.isReleased = session, false
}

func (r *run) currentSession() (reducer.Session, error) {
	if r.isReleased {
		return r.cacheEntry.Get()
	}
	return r.session, nil
}

func (r *run) hasResult() bool {
	return r.answer.future != nil && r.answer.future.IsReady() || r.calls.isReady() || r.wake.isReady() || r.deliveries.isReady()
}

// receive applies the inbox in order, up to maxTaskBytes, and then the results of activities. A run that must
// continue as new ([run.isUrgent]) applies results even if signals remain: the next run does not receive these
// results.
func (r *run) receive() {
	if r.isUrgent() {
		r.awaitAdopted()
	}
	for r.hasInput() && r.pending.bytes < maxTaskBytes && r.task.work < maxTaskWork && !r.continuesAtOnce() && r.load() {
		r.task.work += 1 + len(r.session.Reduced.Messages)/messagesPerWork
		in := r.inbox.take()
		in.append.findKnown(r.session)
		r.trace.receive(in)
		r.cause = in.trace
		r.apply(decode(in, r.now(), workflow.GetInfo(r.ctx).TaskQueueName, r.opened.rules))
		if in.append != nil {
			r.appends.pending = append(r.appends.pending, in.append.resolve(r.session, r.pending.events))
		}
	}
	r.cause = ""
	if !r.hasInput() || r.isUrgent() {
		r.receiveResults()
	}
	if r.isCancelled() {
		r.isClosing = true
		r.apply(reducer.CloseAsked{At: r.now(), Reason: "the workflow was cancelled"})
	}
}

func (r *run) receiveResults() {
	if r.answer.future != nil && r.answer.future.IsReady() {
		ended := r.result()
		r.answer.future = nil
		r.answer.cancel() // releases the child of r.ctx
		r.apply(ended)
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
		if record, ok := effect.(reducer.Record); ok {
			for _, e := range record.Events {
				p := newPendingEvent(e)
				p.trace = r.cause
				r.pending.events = append(r.pending.events, p)
				r.pending.bytes += p.size()
			}
		} else {
			r.pending.effects = append(r.pending.effects, effect)
		}
	}
}

func (r *run) perform() error {
	r.recordPending()
	r.cacheEntry.Put(r.session)
	r.updateVisibility()
	if r.isDue() {
		if err := r.continueAsNew(); err != nil {
			return err
		}
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
		record(r.ctx, r.pending.events, r.register)
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
		case reducer.StartRequest:
			r.startRequest(effect)
		case reducer.AdoptRequest:
			r.adoptRequest(effect)
		case reducer.TellRequest:
			r.tellRequest(effect)
		case reducer.InterruptRequest:
			r.interruptRequest(effect)
		case reducer.CallTool:
			r.callTool(effect)
		case reducer.CancelTools:
			r.cancelTools(effect)
		case reducer.WakeAt:
			r.wakeAt(effect)
		}
	}
}

// await waits for a condition. It registers a run that was reset in the meantime.
func (r *run) await(condition func() bool) {
	for {
		// The error is nil: ctx is never cancelled.
		_ = workflow.Await(r.ctx, func() bool { return r.isReset() || condition() })
		if !r.isReset() {
			return
		}
		wasReleased := r.isReleased
		if wasReleased {
			r.acquireSession()
		}
		r.register(r.session.EventCount - len(r.pending.events))
		if wasReleased {
			r.releaseSession()
		}
	}
}
