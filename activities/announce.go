package activities

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

const (
	// announceAfter delays the signal that an attempt was sent, unless [attempt.announce] says otherwise.
	// A signal costs the server half as much as a turn, and the result contains the same information, so
	// short answers send none. Until the signal, the workflow sends new input as a stop message, see
	// [reducer.TellRequest].
	announceAfter   = 250 * time.Millisecond
	announceTimeout = 5 * time.Second // of the signal
)

// announcement signals the workflow that a request was sent. Nil: it was not sent.
type announcement struct {
	sender      sync.WaitGroup
	now, cancel context.CancelFunc
	started     wire.RequestStarted
	guard       *guard

	mu       sync.Mutex
	ended    *wire.AttemptEnd // nil: the result of the attempt reports the end
	hasEnded bool             // the signal included ended
}

func (n *announcement) signal() wire.RequestStarted {
	n.mu.Lock()
	defer n.mu.Unlock()
	started := n.started
	started.Ended, n.hasEnded = n.ended, n.ended != nil
	started.Hooks = n.guard.reported()
	return started
}

func (n *announcement) end(ended *wire.AttemptEnd) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ended = ended
}

// isStep reports whether the attempt is the first one of its activity and follows tool calls.
func (a *attempt) isStep() bool { return a.in.Steps > 0 && a.attempted.Attempt == a.in.FirstAttempt }

func (a *attempt) announce(ctx context.Context, policy event.Policy) {
	a.mu.Lock()
	a.attempted.Sent = true
	if deadline, ok := ctx.Deadline(); ok {
		a.deadline = a.serverNow().Add(time.Until(deadline))
	}
	// The signal is sent at once
	//   - for each attempt but the first of the request, so that the log shows it and the end of the attempt
	//     before it;
	//   - under a policy without interruptions, which treats input differently once the request was sent;
	//   - without a connection, since stop messages cannot arrive;
	//   - with reports of hooks;
	//   - if the attempt lacks input that arrived before it was sent.
	// The first two do not apply to the first attempt of an activity after tool calls.
	isUrgent := !a.isStep() && (a.attempted.Attempt > 1 || !reducer.RuleOf(policy).Interrupts) ||
		!a.options.Stream.Connected() || len(a.guard.reported()) > 0 || a.newestInput > event.Counter(a.attempted.Through)
	started := wire.RequestStarted{
		RequestID: a.in.RequestID, Attempt: a.attempted.Attempt, Through: a.attempted.Through,
		ProviderID: a.attempted.ProviderID, Model: a.attempted.Model, Worker: a.options.WorkerQueue,
	}
	if a.lost != nil {
		started.Lost = &wire.LostAttempt{
			Attempt: a.lost.Attempt, Through: a.lost.Through, ProviderID: a.lost.ProviderID, Model: a.lost.Model, Usage: a.lost.Usage,
		}
	}
	a.mu.Unlock()
	a.broadcast.SetThrough(started.Through)

	ctx = context.WithoutCancel(ctx)
	delay, now := context.WithTimeout(ctx, announceAfter)
	ctx, cancel := context.WithTimeout(ctx, announceAfter+announceTimeout)
	n := &announcement{now: now, cancel: cancel, started: started, guard: a.guard}
	a.announcement = n
	if len(a.guard.reported()) > 0 {
		defer n.sender.Wait() // the log explains what the model receives, even if this worker dies
	}
	if isUrgent {
		now()
	}
	n.sender.Go(func() {
		select {
		case <-delay.Done():
		case <-ctx.Done():
			return
		}
		a.signalStarted(ctx, n.signal())
	})
}

// signalStarted signals the current run or, if that has continued as new, the run that adopts the attempt.
func (a *attempt) signalStarted(ctx context.Context, started wire.RequestStarted) {
	for {
		run, changed := a.currentRun()
		err := a.options.Temporal.SignalWorkflow(ctx, run.ID, run.RunID, wire.SignalRequestStarted, started)
		if errors.As(err, new(*serviceerror.NotFound)) {
			select {
			case <-changed:
				continue
			case <-ctx.Done():
			}
		}
		if err != nil && !errors.Is(ctx.Err(), context.Canceled) {
			activity.GetLogger(ctx).Warn("cannot signal the workflow that its request was sent", "request", started.RequestID, "error", err)
		}
		return
	}
}

// finishAnnouncement cancels the signal if there is a result, which makes it redundant. Temporal
// hides the error of a retried attempt from the workflow, so the signal reports it.
func (a *attempt) finishAnnouncement(ctx context.Context, err error) {
	n := a.announcement
	if n == nil {
		return
	}
	ended := endOf(err)
	n.end(ended)
	if err == nil {
		n.cancel()
	} else {
		n.now()
	}
	n.sender.Wait()
	n.now()
	n.cancel()
	if ended != nil && !n.hasEnded {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), announceTimeout)
		defer cancel()
		a.signalStarted(ctx, n.signal())
	}
}

// endOf returns nil for an attempt that will not be retried.
func endOf(err error) *wire.AttemptEnd {
	var failed *temporal.ApplicationError
	var details Failure
	if !errors.As(err, &failed) || failed.NonRetryable() || !failed.HasDetails() || failed.Details(&details) != nil {
		return nil
	}
	return &wire.AttemptEnd{
		Kind: details.Kind, Retryable: details.Retryable, Error: event.Redact(failed.Message(), reducer.MaxSignalledError),
		DurationMs: details.DurationMs, Usage: details.Usage,
	}
}
