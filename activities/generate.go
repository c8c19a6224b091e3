package activities

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/pause"
	"github.com/seed-9ed7edd4/chronicle/internal/stream"
	"github.com/seed-9ed7edd4/chronicle/internal/tracing"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

var (
	errShutdown  = errors.New("the worker is shutting down")
	errTimeout   = errors.New("the attempt took longer than the timeout of the context")
	errTooLong   = errors.New("the answer exceeds the maximum length")
	errCancelled = errors.New("the workflow cancelled the attempt")
	errAbandoned = errors.New("the server does not wait for the attempt any more")
)

type stopped struct {
	reason event.Reason
	at     time.Time
}

func (s stopped) Error() string { return "stopped: " + string(s.reason) }

// Generate waits until an attempt is due, sends it to the model and publishes the answer's deltas. What happens after
// it was sent is a result. An error means that it was not sent, and Temporal repeats it.
func (a *Activities) Generate(ctx context.Context, in AttemptInput) (reducer.AttemptEnded, error) {
	span := trace.SpanFromContext(ctx)
	in.describe(span)
	if last, ok := sentBefore(ctx); ok {
		return reducer.AttemptEnded{Outcome: reducer.Lost, ProviderID: last.ProviderID, Model: last.Model, Usage: last.Usage, Trace: last.Trace}, nil
	}
	g := &generation{
		Activities: a, in: in, info: activity.GetInfo(ctx), startedAt: time.Now(), trace: tracing.Traceparent(ctx),
		measured: &measurement{Metrics: a.metrics},
	}
	ctx, g.life = a.startLife(ctx, g.info, g.trace)
	defer g.life.end()
	g.measured.Running.Add(1)
	defer g.measured.Running.Add(-1)
	result, err := g.run(ctx)
	g.measured.ended(in, result)
	a.traceResult(span, result)
	if err != nil {
		return reducer.AttemptEnded{}, err
	}
	if result.Outcome != reducer.Completed {
		result.Trace = g.trace
	}
	return result, nil
}

// sentBefore returns the last heartbeat of an earlier attempt of the activity that has sent the request.
func sentBefore(ctx context.Context) (last Heartbeat, ok bool) {
	if activity.HasHeartbeatDetails(ctx) && activity.GetHeartbeatDetails(ctx, &last) == nil {
		return last, last.Sent
	}
	return last, false
}

// generation is what all steps of an attempt know. The steps pass values on: prepare returns a [prepared], send
// an [answered], and conclude the result.
type generation struct {
	*Activities
	in        AttemptInput
	info      activity.Info
	startedAt time.Time
	trace     string // traceparent; empty: it is not traced
	measured  *measurement
	life      *life
}

func (g *generation) run(ctx context.Context) (result reducer.AttemptEnded, err error) {
	var p prepared
	defer func() {
		if problem := recover(); problem != nil {
			activity.GetLogger(ctx).Error("attempt panicked", "request", g.in.RequestID, "attempt", g.in.Attempt,
				"panic", event.Redact(fmt.Sprint(problem), 2000), "stack", string(debug.Stack()))
			result, err = g.end(ctx, p, answered{err: fmt.Errorf("generate: panic: %v", problem)})
		}
	}()
	broadcast := g.options.Stream.Broadcast(
		stream.Attempt{ContextName: g.in.ContextName, RequestID: g.in.RequestID, Number: g.in.Attempt, After: g.in.Through}, g.life.stop)
	defer broadcast.Close()
	if p, err = g.admit(ctx); err == nil && p.overflow == nil {
		err = g.life.send(ctx, p)
	}
	if err != nil || p.overflow != nil {
		p.settle(event.Usage{})
		return g.end(ctx, p, answered{err: err})
	}
	broadcast.SetThrough(throughOf(p.session))
	return g.guarded(ctx, p, func(d Delta) {
		if d.IsReasoning {
			broadcast.PublishReasoning(d.Text)
		} else {
			broadcast.Publish(d.Text)
		}
	}), nil
}

// guarded sends the request, with the hooks beside and after the answer, and settles its usage.
func (g *generation) guarded(ctx context.Context, p prepared, publish func(Delta)) reducer.AttemptEnded {
	ctx, cancel := context.WithDeadlineCause(ctx, p.deadline, errTimeout)
	defer cancel()
	streaming, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	publish, passed := p.guard.deltas(publish, g.in.Compaction != nil)
	defer p.guard.startBeside(ctx, stop, passed)()
	r := g.send(streaming, p, publish)
	p.settle(r.Usage)
	return g.conclude(ctx, p, r)
}

// admit waits until the attempt is due, prepares it, and reserves its usage.
func (g *generation) admit(ctx context.Context) (prepared, error) {
	p := prepared{settle: func(event.Usage) {}}
	var err error
	if p.session, err = g.session(ctx); err != nil {
		return p, err
	}
	if err = g.awaitDue(ctx, p.session); err != nil {
		return p, err
	}
	p.dueAt = time.Now()
	p.deadline = p.dueAt.Add(milliseconds(g.in.TimeoutMs))
	timed, cancel := context.WithDeadlineCause(ctx, p.deadline, errTimeout)
	defer cancel()
	var r reservations
	if err = g.prepare(timed, &p); err == nil {
		r, err = g.measure(timed, &p)
	}
	if err != nil || p.overflow != nil {
		return p, g.timedOut(timed, p, err)
	}
	return g.reserve(ctx, p, r)
}

// awaitDue waits for the quiet period or the delay of a retry.
func (g *generation) awaitDue(ctx context.Context, session reducer.Session) error {
	if !g.in.SendAt.IsZero() {
		pause.For(ctx, g.in.due().Sub(g.serverNow()))
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if g.in.Steps == 0 && g.in.Previous == nil && !session.TriggerAt.IsZero() {
		waited := max(0, g.serverNow().Sub(session.TriggerAt))
		g.metrics.Debounce.Observe(waited.Seconds())
		activity.GetLogger(ctx).Debug("request debounced", "request", g.in.RequestID, "attempt", g.in.Attempt,
			"through", throughOf(session), "waited_ms", waited.Milliseconds())
	}
	return nil
}

// due returns the time of the sending, at random within the jitter.
func (in AttemptInput) due() time.Time {
	return in.SendAt.Add(-milliseconds(rand.Int64N(in.JitterMs + 1)))
}

// serverNow is the time of the server, whose clock dates events.
func (g *generation) serverNow() time.Time { return g.info.StartedTime.Add(time.Since(g.startedAt)) }

func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// answered is the answer of a model, or its beginning with an error.
type answered struct {
	Answer
	err     error
	refused *reducer.Overflow // of an input that the provider rejected as too long; nil: not rejected, or unknown
}

// send sends the request, and bounds the answer.
func (g *generation) send(ctx context.Context, p prepared, publish func(Delta)) (r answered) {
	streaming, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	g.measured.sent(g.in, p)
	size, reasoned, keep := 0, 0, p.request.Settings.Reasoning
	r.Answer, r.err = p.model.Stream(streaming, p.request, func(delta Delta) {
		g.measured.delta()
		if delta.IsReasoning {
			if reasoned += len(delta.Text); keep == event.ReasoningOff || reasoned > event.MaxReasoningBytes {
				return
			}
		} else if size += len(delta.Text); size > event.MaxAnswerBytes {
			stop(errTooLong)
			return
		}
		publish(delta)
	})
	g.measured.streamed(context.Cause(ctx))
	r.refused = refusedLength(ctx, p, r.err)
	if r.err = g.timedOut(ctx, p, r.err); r.err != nil && context.Cause(streaming) == errTooLong {
		r.err = errTooLong
	}
	return r
}

// timedOut returns the error of an attempt that reached its timeout instead of another error, unless a hook
// refused it.
func (g *generation) timedOut(ctx context.Context, p prepared, err error) error {
	var failed *ModelError
	if err == nil || errors.As(err, &failed) && failed.Failure == event.FailureRefusedByHook || !errors.Is(context.Cause(ctx), errTimeout) {
		return err
	}
	return &ModelError{
		Kind: "timeout", Failure: event.FailureTimeout, Retryable: true,
		Err: fmt.Errorf("%s: timeout: %w (%v)", p.providerID, errTimeout, milliseconds(g.in.TimeoutMs)),
	}
}

// retried returns an error of an attempt that Temporal repeats, after a delay; 0: that of its retry policy. It may
// quote the result of a tool, so it is benign: the SDK logs it at the debug level only.
func retried(kind, text string, delay time.Duration) error {
	return temporal.NewApplicationErrorWithOptions(text, kind, temporal.ApplicationErrorOptions{
		Category: temporal.ApplicationErrorCategoryBenign, NextRetryDelay: delay,
	})
}
