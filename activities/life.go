package activities

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/seed-9ed7edd4/chronicle/internal/stream"
)

// life sends the heartbeats of an attempt, and cancels the attempt when it must stop: after a stop message, on
// hand-back, or if a heartbeat reports that the workflow cancelled it.
//
// It does not use the heartbeats of the SDK, which cancel the activity when Temporal is unreachable for some
// seconds. The heartbeats continue after a cancellation, because the attempt may still have to report its text.
type life struct {
	temporal client.Client
	token    []byte
	cancel   context.CancelCauseFunc
	end      func() // ends the heartbeats

	mu    sync.Mutex
	state Heartbeat
	model Model // nil before the request is sent
}

// startLife returns a context of an attempt that its life cancels.
func (a *Activities) startLife(ctx context.Context, info activity.Info, trace string) (context.Context, *life) {
	work, cancel := context.WithCancelCause(ctx)
	l := &life{temporal: a.options.Temporal, token: info.TaskToken, cancel: cancel, state: Heartbeat{Trace: trace}}
	select {
	case <-a.options.HandBack:
		cancel(errShutdown)
	default:
	}
	beating, stop := context.WithCancel(context.WithoutCancel(ctx))
	var beats sync.WaitGroup
	l.end = func() {
		stop()
		beats.Wait()
		cancel(nil)
	}
	beats.Go(func() { l.beat(beating, heartbeatInterval(info)) })
	beats.Go(func() {
		select {
		case <-a.options.HandBack:
			cancel(errShutdown)
		case <-beating.Done():
		}
	})
	return work, l
}

// heartbeatInterval is short enough for one heartbeat to fail before the timeout.
func heartbeatInterval(info activity.Info) time.Duration {
	return cmp.Or(info.HeartbeatTimeout, DefaultFailover) / 3
}

func (l *life) beat(ctx context.Context, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			sending, cancel := context.WithTimeout(ctx, 3*interval)
			err := l.temporal.RecordActivityHeartbeat(sending, l.token, l.heartbeat())
			cancel()
			switch {
			case temporal.IsCanceledError(err):
				l.cancel(errCancelled)
			case errors.As(err, new(*serviceerror.NotFound)):
				l.cancel(errAbandoned)
				return
			}
		}
	}
}

func (l *life) heartbeat() Heartbeat {
	l.mu.Lock()
	defer l.mu.Unlock()
	state := l.state
	if l.model != nil {
		state.Usage = l.model.Usage()
	}
	return state
}

// reserve notes the reservation of the attempt, which another attempt settles if this worker dies.
func (l *life) reserve(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state.Reservation = key
}

// send marks the attempt as sent, unless it was stopped before.
func (l *life) send(ctx context.Context, p prepared) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	l.state.Sent, l.state.ProviderID, l.state.Model, l.model = true, p.providerID, p.modelName, p.model
	return nil
}

func (l *life) isSent() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state.Sent
}

// stop cancels the attempt, unless only an unsent one is to stop and it was sent.
func (l *life) stop(stop stream.Stop) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !stop.Unsent || !l.state.Sent {
		l.cancel(stopped{stop.Reason, time.Now()})
	}
}
