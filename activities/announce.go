package activities

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

const (
	// announceAfter is how long a first attempt runs before the workflow is signalled that its
	// request was sent. The result carries the same information, and a signal costs the server
	// half a turn, so short answers are not announced. Until then the workflow sends new input
	// as a stop message, see [reducer.TellRequest].
	announceAfter = 250 * time.Millisecond
	// announceTimeout bounds the signal.
	announceTimeout = 5 * time.Second
)

// announcement signals the workflow that a request was sent. Nil: it was not sent.
type announcement struct {
	sender      sync.WaitGroup
	now, cancel context.CancelFunc
}

// announce marks the request as sent and schedules the signal.
func (a *attempt) announce(ctx context.Context, policy event.Policy) {
	a.mu.Lock()
	a.attempted.Sent = true
	// The reason for a retry should be visible; other policies depend on whether the request was
	// sent; and a stop message may get lost, or have arrived before the request was sent.
	isUrgent := a.attempted.Attempt > 1 || !reducer.RuleOf(policy).Interrupts ||
		!a.options.Stream.Connected() || a.newestInput > event.Counter(a.attempted.Through)
	started := wire.RequestStarted{
		RequestID: a.in.RequestID, Attempt: a.attempted.Attempt, Through: a.attempted.Through,
		ProviderID: a.attempted.ProviderID, Model: a.attempted.Model, Worker: a.options.WorkerQueue,
	}
	a.mu.Unlock()
	a.broadcast.SetThrough(started.Through)

	ctx = context.WithoutCancel(ctx)
	delay, now := context.WithTimeout(ctx, announceAfter)
	ctx, cancel := context.WithTimeout(ctx, announceAfter+announceTimeout)
	a.announcement = &announcement{now: now, cancel: cancel}
	if isUrgent {
		now()
	}
	a.announcement.sender.Go(func() {
		select {
		case <-delay.Done():
		case <-ctx.Done():
			return
		}
		err := a.signalStarted(ctx, started)
		if err != nil && !errors.Is(ctx.Err(), context.Canceled) {
			activity.GetLogger(ctx).Warn("Cannot signal the workflow that its request was sent", "request", started.RequestID, "error", err)
		}
	})
}

// signalStarted signals the current run. When that run continues as new, it signals the run that
// adopts the attempt.
func (a *attempt) signalStarted(ctx context.Context, started wire.RequestStarted) error {
	for {
		run, changed := a.currentRun()
		err := a.options.Temporal.SignalWorkflow(ctx, run.ID, run.RunID, wire.SignalRequestStarted, started)
		if !errors.As(err, new(*serviceerror.NotFound)) {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return err
		}
	}
}

// finish ends the announcement of an attempt that ended with err. A result makes the signal
// redundant. The workflow does not see the error of an attempt that is retried, so it needs the
// signal.
func (n *announcement) finish(err error) {
	if n == nil {
		return
	}
	if err == nil {
		n.cancel()
	} else {
		n.now()
	}
	n.sender.Wait()
	n.now()
	n.cancel()
}
