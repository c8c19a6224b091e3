package workflows

import (
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

const workflowType = wire.WorkflowType

// Options of the workflow of a worker.
type Options struct {
	// Reduce folds events into what the model is shown. Nil: [reducer.Reduce].
	// Contexts that are running were folded by what their workers had then, so
	// a worker whose reducer treats old events differently shows the model
	// another past.
	Reduce reducer.Reducer
	// Cache is shared with the activities of this process. Nil: Generate
	// asks by query.
	Cache *activities.SessionCache
	// StoreID is the identity of the blob store of this worker. Contexts of another
	// store fail their workflow tasks here. Empty: contexts of any store are taken.
	StoreID string
}

// Context is the workflow of a context with the default options. Nobody need give
// it input: its name is its workflow id, and all else comes by signal. The input
// is what one run hands over to the next.
func Context(ctx workflow.Context, input converter.RawValue) error { return New(Options{})(ctx, input) }

// New returns [Context] with options. Register it as [wire.WorkflowType].
func New(options Options) func(workflow.Context, converter.RawValue) error {
	reduce := options.Reduce
	if reduce == nil {
		reduce = reducer.Reduce
	}
	return newWorkflow(reducer.NewStepper(reduce), options.Cache, options.StoreID)
}

func newWorkflow(step reducer.Stepper, cache *activities.SessionCache, storeID string) func(workflow.Context, converter.RawValue) error {
	return func(ctx workflow.Context, input converter.RawValue) error {
		r, err := newRun(ctx, step, cache)
		if err != nil {
			return err
		}
		r.storeID = storeID
		defer r.cached.Remove()
		carried, err := carriedBy(workflow.GetInfo(ctx), input)
		if err != nil {
			panic(err.Error()) // fails the workflow task and so loses nothing
		}
		return r.loop(carried)
	}
}

// acts stands for the activities in calls of them.
var acts *activities.Activities

// run is one run of the workflow.
type run struct {
	// ctx is not cancelled with the workflow: closing takes its time. asked is,
	// and asks to close; closing says that it was heard.
	ctx     workflow.Context
	asked   workflow.Context
	closing bool
	step    reducer.Stepper
	inbox   *inbox
	cached  *activities.CacheEntry
	// name is that of the context.
	name string
	// session is empty while the run rests, see rest: query handlers and coroutines
	// must not use it.
	session reducer.Session
	resting bool
	// updatedAt is when the session last changed.
	updatedAt time.Time
	task      task
	// events were not recorded yet, and take size bytes; effects were not
	// performed yet.
	events  []event.Event
	size    int
	effects []reducer.Effect
	// appended are the appends whose events wait to be recorded.
	appended []*appending
	// generate is the running activity, nil without one; cancel cancels it
	// through Temporal.
	generate  workflow.Future
	cancel    workflow.CancelFunc
	requestID string // of what generate is for
	// adopted is the attempt that the coroutine of adoptRequest waits for, nil without one.
	adopted workflow.Future
	// running is the request that generate is for.
	running reducer.StartRequest
	// attributes says that search attributes may be used; status and turns are
	// what they show since shownAt.
	attributes bool
	// storeID is Options.StoreID. isRegistered says that the run is in the archive.
	storeID      string
	isRegistered bool
	// registeredAt is the history length at which this run, or its base, registered
	// after a reset.
	registeredAt int
	// unanswered is the number of appends that are recorded and whose handlers have
	// not returned yet.
	unanswered int
	// continueAfter is the length from which on a history is long, 0 for the
	// default. Events up to archivedThrough were archived by this run; archiving is
	// the activity that archives up to archivingThrough, nil without one.
	// isUnarchived says that the archive may lack events of earlier runs.
	isUnarchived     bool
	archiving        workflow.Future
	archivingThrough int
	continueAfter    int
	archivedThrough  int
	status           wire.Status
	turns            int
	shownAt          time.Time
	defaultModel     string
	previousRunID    string
	forkedFrom       string
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
		// Fails the workflow task and so loses nothing.
		panic("workflows.Interceptor() is missing in the interceptors of the worker")
	}
	detached, _ := workflow.NewDisconnectedContext(ctx)
	r := &run{
		ctx: detached, asked: ctx, step: step, inbox: box, cached: cache.Entry(info.WorkflowExecution.RunID),
		name: name, session: reducer.NewSession(name),
	}
	if err := workflow.SetQueryHandler(ctx, wire.QueryState, func() (wire.State, error) {
		session, err := r.newest()
		return wire.StateOf(session, r.updatedAt), err
	}); err != nil {
		return nil, err
	}
	if err := workflow.SetQueryHandler(ctx, wire.QueryStopCheck, func() (wire.StopCheck, error) {
		session, err := r.newest()
		return wire.StopCheckOf(session), err
	}); err != nil {
		return nil, err
	}
	if err := workflow.SetQueryHandler(ctx, wire.QueryDelivery, func(clientEventIDs []string) (wire.Delivery, error) {
		session, err := r.newest()
		if err != nil {
			return wire.Delivery{}, err
		}
		// A run that has not opened its session yet knows nothing of earlier events.
		pending := session.EventCount == 0 || !r.inbox.empty() || len(r.events) > 0
		return wire.DeliveryOf(session, pending, clientEventIDs), nil
	}); err != nil {
		return nil, err
	}
	if err := workflow.SetUpdateHandlerWithOptions(ctx, wire.UpdateAppend, r.append, workflow.UpdateHandlerOptions{
		Validator: r.validateAppend, Description: "takes an event, or an array of them, and returns their ids in the log",
	}); err != nil {
		return nil, err
	}
	return r, workflow.SetQueryHandler(ctx, wire.QuerySnapshot, func() (reducer.Session, error) {
		session, err := r.newest()
		if err != nil {
			return reducer.Session{}, err
		}
		if !wire.Fits(session) {
			return reducer.Session{}, errors.New("the session is too large for the answer to a query: read the log")
		}
		session.Recent = nil // the request has no use for it
		return session, nil
	})
}

// loop is the life of a session, or of the part of it that falls to this run.
func (r *run) loop(c *carried) error {
	begin := r.open
	if c != nil {
		begin = func() error { return r.takeOver(c) }
	}
	if err := begin(); err != nil {
		return err
	}
	if c != nil && c.Running != nil && !r.inbox.empty() {
		// The run adopts the answer before it takes what arrived in the meantime.
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
			r.archiveEnd()
			// Whoever appended gets an answer first.
			r.await(func() bool { return !r.inbox.empty() || workflow.AllHandlersFinished(r.ctx) })
			if r.inbox.empty() {
				return nil
			}
		}
		r.rest()
		r.await(func() bool {
			return !r.inbox.empty() || r.generate != nil && r.generate.IsReady() || r.isCancelled()
		})
		r.wake()
		r.noteTask()
		r.receive()
	}
}

// rest lends the session to the cache of the worker, which bounds the memory that
// waiting contexts take.
func (r *run) rest() {
	r.cached.Release(r.session)
	r.session, r.resting = reducer.Session{}, true
}

// wake takes the session back.
func (r *run) wake() {
	session, err := r.cached.Acquire()
	if err != nil {
		panic(err.Error()) // the run is replayed from its history
	}
	r.session, r.resting = session, false
}

// newest is the session, for queries.
func (r *run) newest() (reducer.Session, error) {
	if r.resting {
		return r.cached.Get()
	}
	return r.session, nil
}

// receive takes every signal that is there, in order, and then the result of
// the request, up to the bytes that one workflow task takes. A run that may have to
// end before it gets to the last signal takes the result, which the next run cannot.
func (r *run) receive() {
	if r.isEndangered() {
		r.awaitAdopted()
	}
	for !r.inbox.empty() && r.size < maxTaskBytes && !r.isLeaving() {
		in := r.inbox.take()
		in.append.recall(r.session)
		r.take(decode(in, r.now(), workflow.GetInfo(r.ctx).TaskQueueName))
		if in.append != nil {
			r.appended = append(r.appended, in.append.settle(r.session, r.events))
		}
	}
	if (r.inbox.empty() || r.isEndangered()) && r.generate != nil && r.generate.IsReady() {
		ended := r.result()
		r.generate = nil
		r.take(ended)
	}
	if r.isCancelled() {
		r.closing = true
		r.take(reducer.CloseAsked{At: r.now(), Reason: "the workflow was cancelled"})
	}
}

// isCancelled reports whether the workflow was cancelled, which is another way
// to close the context, and nobody has seen to it yet.
func (r *run) isCancelled() bool { return r.asked.Err() != nil && !r.closing }

func (r *run) now() time.Time { return workflow.Now(r.ctx) }

// take makes a step and keeps its effects for perform.
func (r *run) take(in reducer.Input) {
	var effects []reducer.Effect
	r.session, effects = r.step(r.session, in)
	for _, effect := range effects {
		if record, ok := effect.(reducer.Record); ok {
			for _, e := range record.Events {
				r.events = append(r.events, e)
				r.size += sizeOf(e)
			}
		} else {
			r.effects = append(r.effects, effect)
		}
	}
}

// perform records the events of this turn of the loop and then does what
// follows from them, or leaves it to the next run.
func (r *run) perform() error {
	if len(r.events) > 0 {
		r.updatedAt = r.events[len(r.events)-1].Timestamp
		record(r.ctx, r.events, r.register)
		r.noteTask()
		r.task.recorded += r.size
		r.events, r.size = nil, 0
	}
	for _, a := range r.appended {
		a.isRecorded = true
	}
	r.unanswered += len(r.appended)
	r.appended = nil
	r.cached.Put(r.session)
	r.show()
	if r.isLong() {
		if err := r.continueAsNew(); err != nil {
			return err
		}
	}
	effects := r.effects
	r.effects = nil
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
		}
	}
	if r.noteTask(); r.isTaskFull() {
		endTask(r.ctx)
	}
	return nil
}

// await waits for a condition, and registers a run that was reset while it waited.
func (r *run) await(condition func() bool) {
	for {
		// Never an error: the context is not cancelled.
		_ = workflow.Await(r.ctx, func() bool { return r.isReset() || condition() })
		if !r.isReset() {
			return
		}
		rests := r.resting
		if rests {
			r.wake()
		}
		r.register(r.session.EventCount - len(r.events))
		if rests {
			r.rest()
		}
	}
}
