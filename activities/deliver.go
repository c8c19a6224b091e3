package activities

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/hook"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
)

const (
	// DeliverTimeout bounds one attempt of [Activities.Deliver].
	DeliverTimeout = 15 * time.Minute
	// MaxDeliveries bounds the deliveries of a process at the same time, so that slow hooks leave room
	// for requests. All hooks have the same share.
	MaxDeliveries = 200
	// maxDelivery is the time after which Deliver returns even if there is more to deliver.
	maxDelivery = 10 * time.Minute
	// maxMissingHook is the number of consecutive attempts on workers without the hook after which Deliver
	// gives up. With the delays between them, that takes about four minutes.
	maxMissingHook = 10
	// linger is how long Deliver waits for the next event of a turn. A turn then costs one activity.
	linger = 30 * time.Second
)

// DeliverInput is the input of [Activities.Deliver].
type DeliverInput struct {
	ContextName string `json:"contextName"`
	Hook        string `json:"hook"`
	Through     int    `json:"through"` // counter of the newest recorded event
}

// DeliverResult is the result of [Activities.Deliver].
type DeliverResult struct {
	Through int `json:"through"` // counter of the newest event that was delivered or skipped
	// NotDelivered: the workers lack the hook. The cursor stays, and Through is that of the input.
	NotDelivered bool `json:"notDelivered,omitempty"`
}

// Deliver calls [hook.Hook.OnEvent] with the recorded events after the stored cursor of the hook, and
// moves the cursor. It also delivers what is recorded while it runs, and during a turn it waits for
// the next event. If the hook fails, Deliver fails, and Temporal repeats it. If this attempt has already
// delivered events, however, Deliver returns without an error, and the workflow starts it again: Temporal
// doubles the retry delay with each failed attempt, so failures of different events would add up to a long
// delay. After a [hook.RetryAfterError], Deliver always fails, so that Temporal waits for the requested
// delay. Deliver also fails on a worker that lacks the hook, so that another worker delivers. If none has
// the hook, the events wait at the cursor.
func (a *Activities) Deliver(ctx context.Context, in DeliverInput) (DeliverResult, error) {
	h, ok := a.observers[in.Hook]
	if !ok {
		return withoutHook(ctx, in)
	}
	if activity.HasHeartbeatDetails(ctx) {
		activity.RecordHeartbeat(ctx, 0) // see withoutHook
	}
	defer h.deliveries.Add(-1)
	if h.deliveries.Add(1) > a.deliveriesPerHook() {
		return DeliverResult{}, deliveryError(h, fmt.Errorf(
			"this worker already runs %d deliveries of the hook, its maximum (Temporal retries this one)", a.deliveriesPerHook()))
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer beat(ctx, a.options.HandBack, func() { cancel(errShutdown) })()
	d := &delivery{Activities: a, hook: h, in: in, startedAt: time.Now()}
	d.lastAt = d.startedAt
	err := d.run(ctx)
	switch {
	case err == nil:
		return DeliverResult{Through: d.newest}, nil
	case d.delivered > 0 && ctx.Err() == nil && !errors.As(err, new(*hook.RetryAfterError)):
		activity.GetLogger(ctx).Warn("delivery failed; another one continues at the cursor",
			"hook", h.Name, "through", d.delivered, "error", event.Redact(err.Error(), maxHookError))
		return DeliverResult{Through: d.delivered}, nil
	default:
		return DeliverResult{}, deliveryError(h, err)
	}
}

// withoutHook fails until maxMissingHook attempts in a row were on workers that lack the hook. Their
// number is in the heartbeat details.
func withoutHook(ctx context.Context, in DeliverInput) (DeliverResult, error) {
	missing := 0
	if activity.HasHeartbeatDetails(ctx) && activity.GetHeartbeatDetails(ctx, &missing) != nil {
		missing = 0
	}
	if missing++; missing < maxMissingHook {
		activity.RecordHeartbeat(ctx, missing)
		return DeliverResult{}, temporal.NewApplicationError(
			fmt.Sprintf("hook %s: this worker does not have it (give all workers of the task queue the same hooks)", in.Hook), "hook")
	}
	activity.GetLogger(ctx).Warn("events wait for a worker with their hook", "hook", in.Hook, "through", in.Through)
	return DeliverResult{Through: in.Through, NotDelivered: true}, nil
}

func (a *Activities) deliveriesPerHook() int64 { return int64(MaxDeliveries / len(a.observers)) }

func deliveryError(h *observer, err error) error {
	options := temporal.ApplicationErrorOptions{}
	var later *hook.RetryAfterError
	if errors.As(err, &later) {
		options.NextRetryDelay = min(max(later.Delay, 0), hook.MaxRetryAfter)
	}
	return temporal.NewApplicationErrorWithOptions(redactedReason(fmt.Sprintf("hook %s: %v", h.Name, err)), "hook", options)
}

type delivery struct {
	*Activities
	hook      *observer
	in        DeliverInput
	startedAt time.Time
	lastAt    time.Time // of the last delivery; startedAt until the first one
	cursor    *archive.Cursor
	batch     batch
	epoch     int  // of the delivering run
	newest    int  // counter of the newest event that was delivered, skipped or failed
	isTurn    bool // the turn continues after that event
	delivered int  // counter of the newest event delivered by this attempt; 0: none
}

func (d *delivery) run(ctx context.Context) (err error) {
	if d.cursor, err = d.options.Archive.Cursor(ctx, d.in.ContextName, d.hook.Name); err != nil {
		return err
	}
	reading, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-activity.GetWorkerStopChannel(ctx):
			stop()
		case <-reading.Done():
		}
	}()
	waiting := time.AfterFunc(DeliverTimeout, stop)
	defer waiting.Stop()
	progress := d.cursor.Progress
	d.batch = batch{through: progress.Through}
	for e, err := range d.log.FollowRun(reading, d.in.ContextName, activity.GetInfo(ctx).WorkflowExecution.RunID, progress.Position) {
		waiting.Stop()
		switch {
		case err != nil && reading.Err() != nil && ctx.Err() == nil:
			return nil // it has waited long enough, or the worker stops
		case err != nil:
			return err
		}
		if d.epoch = e.Epoch; e.ID != "" && d.batch.add(e) {
			continue
		}
		if err := d.deliver(ctx); err != nil {
			return err
		}
		if e.ID != "" {
			d.batch.add(e)
			continue
		}
		d.newest = e.Through
		isDone := d.newest >= d.in.Through && !d.lingers()
		if isDone || time.Since(d.startedAt) > maxDelivery || reading.Err() != nil {
			return nil
		}
		waiting.Reset(linger - time.Since(d.lastAt))
	}
	return d.deliver(ctx) // the run is closed
}

// lingers reports whether the delivery waits for more events. It does not if many others run.
func (d *delivery) lingers() bool {
	return d.isTurn && d.hook.deliveries.Load() <= d.deliveriesPerHook()/2
}

// isDuringTurn reports whether more events of the turn follow e soon: not if the turn waits for a person.
func isDuringTurn(e event.Event) bool {
	switch body := e.Body.(type) {
	case event.UserMessage, event.AnswerRequested:
		return event.RequiresAnswer(body)
	case event.LLMRequestStarted, event.LLMRequestFellBack, event.LLMAttemptEnded, event.HookApplied,
		event.ToolsOffered, event.ToolCall, event.ToolResult, event.ApprovalDecided, event.Compacted, event.ContentRefused:
		return true
	}
	return false
}

// deliver calls the hook with the batch and empties it.
func (d *delivery) deliver(ctx context.Context) error {
	b := d.batch
	d.batch = batch{}
	if len(b.events) == 0 {
		return nil
	}
	if err := d.claim(ctx); err != nil {
		return err
	}
	events := b.of(d.in.ContextName, d.epoch)
	_, err := call(ctx, cmp.Or(d.hook.Timeout, hook.DefaultTimeout), func(ctx context.Context) (hook.Verdict, error) {
		return hook.Verdict{}, d.hook.OnEvent(ctx, events)
	})
	switch {
	case err == nil:
		if err = d.cursor.Set(ctx, archive.Progress{Position: b.end(len(b.events)), Epoch: d.epoch}); err == nil {
			d.delivered = b.end(len(b.events)).After
		}
	case ctx.Err() != nil:
		return context.Cause(ctx) // not a failure of the hook
	default:
		err = d.fail(ctx, b, err)
	}
	d.lastAt = time.Now()
	d.newest, d.isTurn = b.end(len(b.events)).After, isDuringTurn(b.events[len(b.events)-1])
	return err
}

// claim stores the epoch before the first delivery. From then on, runs with lower epochs cannot move
// the cursor. A receiver may ignore the deliveries of those runs without a loss: this run delivers all
// events after the cursor.
func (d *delivery) claim(ctx context.Context) error {
	progress := d.cursor.Progress
	switch {
	case d.epoch == 0:
		return errors.New("the registration of the run in the blob store is unavailable")
	case progress.Epoch > d.epoch:
		return fmt.Errorf("a later run of the context delivers (epoch %d, this run has %d)", progress.Epoch, d.epoch)
	case progress.Epoch == d.epoch:
		return nil
	}
	progress.Epoch = d.epoch
	return d.cursor.Set(ctx, progress)
}

// fail stores when the hook began to fail, and skips old events if it is [hook.Open]. It returns an
// error unless it has skipped the whole batch.
func (d *delivery) fail(ctx context.Context, b batch, err error) error {
	logger := activity.GetLogger(ctx)
	logger.Warn("hook failed", "hook", d.hook.Name, "stage", "event", "error", event.Redact(err.Error(), maxHookError))
	progress := d.cursor.Progress
	if progress.FailingSince.IsZero() {
		progress.FailingSince = time.Now().UTC().Round(0)
	}
	progress.Through = b.end(len(b.events)).After
	n := skippable(d.hook.Hook, b.events, progress.FailingSince, time.Now())
	if n > 0 {
		progress.Position = b.end(n)
		logger.Warn("events were skipped", "hook", d.hook.Name, "first", b.events[0].ID, "last", b.events[n-1].ID)
	}
	if n == len(b.events) {
		progress.Through, err = 0, nil
	}
	return cmp.Or(d.cursor.Set(ctx, progress), err)
}

// skippable returns how many events of a failed batch are skipped.
func skippable(h hook.Hook, events []event.Event, failingSince, now time.Time) (n int) {
	limit := now.Add(-cmp.Or(h.SkipAfter, hook.DefaultSkipAfter))
	if h.OnFailure != hook.Open || failingSince.After(limit) {
		return 0
	}
	for n < len(events) && !events[n].Timestamp.After(limit) {
		n++
	}
	return n
}
