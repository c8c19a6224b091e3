package activities

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/hook"
	"github.com/seed-9ed7edd4/chronicle/internal/metrics"
	"github.com/seed-9ed7edd4/chronicle/internal/pause"
	"github.com/seed-9ed7edd4/chronicle/internal/schema"
	"github.com/seed-9ed7edd4/chronicle/internal/tracing"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// guard runs the hooks for an attempt and collects their reports. Nil: there are no hooks.
type guard struct {
	hooks   []hook.Hook
	request hook.Request
	retry   reducer.RetryConfig
	metrics *metrics.Metrics
	format  func(text string) error // of a changed answer; nil: any

	beside chan struct{} // closed when all hooks beside the answer have ended; nil: none

	mu      sync.Mutex
	err     error // the first refusal or failure beside the answer
	reports []event.HookApplied
	// unchecked are reports of hooks that failed to check the answer. They are added to reports only if the
	// answer was interrupted. The attempt then returns no error, and the reports explain why it has no text.
	unchecked []event.HookApplied
	bytes     int // of the JSON of the changes
}

// hookError is the [ModelError] kind of refusals and failures of hooks.
const hookError = "hook"

var errHookTimeout = errors.New("the hook did not answer in time")

func newGuard(hooks []hook.Hook, request hook.Request, retry reducer.RetryConfig, m *metrics.Metrics) *guard {
	hooks = slices.DeleteFunc(slices.Clone(hooks), func(h hook.Hook) bool { return h.Before == nil && h.After == nil })
	if len(hooks) == 0 {
		return nil
	}
	request.Messages = slices.Clone(request.Messages) // the original belongs to the session
	return &guard{hooks: hooks, request: request, retry: retry, metrics: m}
}

// before runs the hooks before the request, and applies their changes to it.
func (g *guard) before(ctx context.Context) error {
	for _, h := range g.hooks {
		if h.Before == nil || h.Beside {
			continue
		}
		request := g.request
		verdict, err := g.ask(ctx, h, event.HookBefore, func(ctx context.Context) (hook.Verdict, error) { return h.Before(ctx, request) })
		if err != nil {
			return err
		}
		if verdict.Change != nil && !verdict.Change.IsZero() {
			g.report(h, event.HookBefore, event.HookChanged, verdict.Reason, &verdict.Change.HookChange)
		}
	}
	return nil
}

func (g *guard) apply(change event.HookChange) error {
	messages, settings, err := hook.Apply(change, g.request.Messages, g.request.Settings)
	if err != nil {
		return err
	}
	data, err := json.Marshal(change)
	if err != nil {
		return err
	}
	if g.bytes += len(data); g.bytes > hook.MaxChangeBytes {
		return fmt.Errorf("all changes of the request have %d bytes of JSON (at most %d)", g.bytes, hook.MaxChangeBytes)
	}
	g.request.Messages, g.request.Settings = messages, settings
	return nil
}

// startBeside starts the hooks that run beside the answer. It calls pass when all have passed the request. If one
// refuses it or fails, startBeside calls stop and cancels the others. It also cancels them when end is called, or
// PartialTimeout after the end of ctx.
func (g *guard) startBeside(ctx context.Context, stop context.CancelCauseFunc, pass func()) (end func()) {
	var hooks []hook.Hook
	if g != nil {
		hooks = slices.DeleteFunc(slices.Clone(g.hooks), func(h hook.Hook) bool { return !h.Beside })
	}
	if len(hooks) == 0 {
		pass()
		return func() {}
	}
	g.beside = make(chan struct{})
	ctx, cancel := lasting(ctx, hook.PartialTimeout)
	var running sync.WaitGroup
	request := g.request
	for _, h := range hooks {
		running.Go(func() {
			_, err := g.ask(ctx, h, event.HookBeside, func(ctx context.Context) (hook.Verdict, error) { return h.Before(ctx, request) })
			if err != nil && g.fail(err) {
				stop(err)
				cancel()
			}
		})
	}
	go func() {
		running.Wait()
		cancel()
		if g.failure() == nil {
			pass()
		}
		close(g.beside)
	}()
	return func() {
		cancel()
		<-g.beside
	}
}

// fail stores err and returns true if it is the first refusal or failure beside the answer.
func (g *guard) fail(err error) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err != nil {
		return false
	}
	g.err = err
	return true
}

// failure returns the first refusal or failure beside the answer so far.
func (g *guard) failure() error {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.err
}

// after waits for the hooks beside the answer and runs those after it. It returns the answer with
// their changes.
func (g *guard) after(ctx context.Context, response hook.Response) (hook.Response, error) {
	if g.beside != nil {
		<-g.beside
		if err := g.failure(); err != nil {
			return response, err
		}
	}
	ctx, cancel := lasting(ctx, hook.PartialTimeout)
	defer cancel()
	if !response.Partial && len(response.Calls) == 0 {
		// The format is valid, since the request was sent. If the answer does not match it, such as a
		// refusal by the model, a changed answer need not match it either.
		if format, _ := schema.OfFormat(g.request.Settings.ResponseFormat); format != nil && format(response.Text) == nil {
			g.format = format
		}
	}
	for _, h := range g.hooks {
		if h.After == nil {
			continue
		}
		request, checked := g.request, response
		verdict, err := g.ask(ctx, h, event.HookAfter, func(ctx context.Context) (hook.Verdict, error) { return h.After(ctx, request, checked) })
		if err != nil {
			return response, err
		}
		if verdict.Change != nil && verdict.Change.Text != nil && *verdict.Change.Text != response.Text {
			response.Text, response.Reasoning = validText(*verdict.Change.Text), ""
			g.report(h, event.HookAfter, event.HookChanged, verdict.Reason, nil)
		}
	}
	return response, nil
}

// ask returns a verdict that lets the attempt pass, or an error: a refusal, a failure of the hook, or
// the cause of the end of ctx. A failure of a hook with [hook.Open] is reported, and the attempt passes.
func (g *guard) ask(ctx context.Context, h hook.Hook, stage event.HookStage, check func(context.Context) (hook.Verdict, error)) (hook.Verdict, error) {
	isSent := stage != event.HookBefore
	verdict, err := g.verdict(ctx, h, stage, check)
	for n := 1; err != nil && isSent && h.OnFailure != hook.Open && !errors.Is(err, hook.ErrBroken) && n <= g.retry.MaxRetries; n++ {
		// Only the hook is called again: another attempt would be billed again.
		g.warn(ctx, h, stage, err)
		if !pause.For(ctx, g.retry.Delay(n)) {
			break
		}
		verdict, err = g.verdict(ctx, h, stage, check)
	}
	switch {
	case err == nil && verdict.Refuse == "":
		return verdict, nil
	case err == nil:
		g.report(h, stage, event.HookRefused, verdict.Refuse, nil)
		return hook.Verdict{}, &ModelError{
			Kind: hookError, Failure: event.FailureRefusedByHook, Err: fmt.Errorf("hook %s: %s", h.Name, redactedReason(verdict.Refuse)),
		}
	case ctx.Err() != nil && (stage == event.HookBefore || context.Cause(ctx) == context.Canceled):
		return hook.Verdict{}, context.Cause(ctx) // not a failure of the hook
	}
	g.warn(ctx, h, stage, err)
	if h.OnFailure == hook.Open {
		g.report(h, stage, event.HookFailed, err.Error(), nil)
		return hook.Verdict{}, nil
	}
	g.setUnchecked(h, stage, err)
	return hook.Verdict{}, &ModelError{
		Kind: hookError, Failure: event.FailureHookFailed, Retryable: !errors.Is(err, hook.ErrBroken), Final: isSent,
		Err: fmt.Errorf("hook %s: %w", h.Name, err),
	}
}

func (g *guard) warn(ctx context.Context, h hook.Hook, stage event.HookStage, err error) {
	activity.GetLogger(ctx).Warn("hook failed", "request", g.request.RequestID, "attempt", g.request.Attempt, "hook", h.Name, "stage", stage, "error", event.Redact(err.Error(), maxHookError))
}

func (g *guard) measure(h hook.Hook, stage event.HookStage, v hook.Verdict, err error, began time.Time) {
	outcome := "passed"
	switch {
	case err != nil:
		outcome = "failed"
	case v.Refuse != "":
		outcome = "refused"
	case v.Change != nil:
		outcome = "changed"
	}
	g.metrics.HookCalls.Add(1, h.Name, string(stage), outcome)
	g.metrics.HookDuration.Observe(time.Since(began).Seconds(), h.Name, string(stage))
}

// verdict returns a valid verdict, and applies its change of the request.
func (g *guard) verdict(ctx context.Context, h hook.Hook, stage event.HookStage, check func(context.Context) (hook.Verdict, error)) (verdict hook.Verdict, err error) {
	ctx, span := startHook(ctx, h, stage)
	defer func(began time.Time) {
		g.measure(h, stage, verdict, err, began)
		tracing.End(span, err)
	}(time.Now())
	verdict, err = call(ctx, cmp.Or(h.Timeout, hook.DefaultTimeout), check)
	if err != nil {
		return verdict, err
	}
	err = verdict.Validate(stage)
	switch {
	case err != nil || verdict.Refuse != "" || verdict.Change == nil:
	case stage == event.HookBefore:
		err = g.apply(verdict.Change.HookChange)
	case verdict.Change.Text != nil && g.format != nil && g.format(*verdict.Change.Text) != nil:
		// The error omits what is wrong, which may quote the answer.
		err = errors.New("the changed answer does not have the response format")
	}
	if err != nil {
		err = fmt.Errorf("%w: invalid verdict: %w", hook.ErrBroken, err)
	}
	return verdict, err
}

// call does not wait for a function that ignores the end of its context.
func call(ctx context.Context, timeout time.Duration, check func(context.Context) (hook.Verdict, error)) (hook.Verdict, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errHookTimeout)
	defer cancel()
	type outcome struct {
		verdict hook.Verdict
		err     error
	}
	ended := make(chan outcome, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				activity.GetLogger(ctx).Error("hook panicked", "panic", event.Redact(fmt.Sprint(p), 2000), "stack", string(debug.Stack()))
				ended <- outcome{err: fmt.Errorf("the hook panicked: %v", p)}
			}
		}()
		verdict, err := check(ctx)
		ended <- outcome{verdict, err}
	}()
	select {
	case out := <-ended:
		if out.err != nil && ctx.Err() != nil {
			out.err = context.Cause(ctx)
		}
		return out.verdict, out.err
	case <-ctx.Done():
		return hook.Verdict{}, context.Cause(ctx)
	}
}

const maxHookError = 400 // bytes

func redactedReason(reason string) string { return event.Redact(validText(reason), maxHookError) }

func validText(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// setUnchecked stores why a hook did not check the answer.
func (g *guard) setUnchecked(h hook.Hook, stage event.HookStage, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.unchecked = append(g.unchecked, g.reportOf(h, stage, event.HookRefused, "not checked: "+err.Error()))
}

// refuseUnchecked reports the hooks that did not check a partial answer.
func (g *guard) refuseUnchecked() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.reports, g.unchecked = append(g.reports, g.unchecked...), nil
}

func (g *guard) report(h hook.Hook, stage event.HookStage, outcome event.HookOutcome, reason string, change *event.HookChange) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.reportOf(h, stage, outcome, reason)
	r.Change = change
	g.reports = append(g.reports, r)
}

func (g *guard) reportOf(h hook.Hook, stage event.HookStage, outcome event.HookOutcome, reason string) event.HookApplied {
	return event.HookApplied{
		RequestID: g.request.RequestID, Attempt: g.request.Attempt, Hook: h.Name, Stage: stage, Outcome: outcome, Reason: redactedReason(reason),
	}
}

func (g *guard) reported() []event.HookApplied {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.reports)
}

func (g *guard) withholds() (untilVerdict, forever bool) {
	if g == nil {
		return false, false
	}
	for _, h := range g.hooks {
		untilVerdict = untilVerdict || h.Withhold && h.Beside
		forever = forever || h.Withhold && h.After != nil
	}
	return untilVerdict, forever
}

// checksAnswers reports whether hooks check answers. Unchecked text must then not be recorded.
func (a *Activities) checksAnswers() bool {
	return slices.ContainsFunc(a.options.Hooks, func(h hook.Hook) bool { return h.After != nil || h.Beside })
}

// deltas returns a function that passes deltas to publish as the hooks allow, and a function to call when the hooks
// beside the answer have let it pass.
func (g *guard) deltas(publish func(Delta), isSummary bool) (take func(Delta), passed func()) {
	switch untilVerdict, forever := g.withholds(); {
	case forever || isSummary:
		return func(Delta) {}, func() {}
	case untilVerdict:
		held := &gate{publish: publish}
		return held.take, held.open
	default:
		return publish, func() {}
	}
}

// lasting returns a context that outlives ctx by d. The cause of its end contains that of ctx.
func lasting(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			cancel(fmt.Errorf("%w (%v after the end of the answer: %w)", errHookTimeout, d, context.Cause(ctx)))
		case <-out.Done():
		}
	})
	return out, func() {
		stop()
		cancel(context.Canceled)
	}
}

// gate publishes deltas, or withholds them until it opens.
type gate struct {
	publish func(Delta)

	mu     sync.Mutex
	isOpen bool
	held   []Delta
}

func (g *gate) take(d Delta) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.isOpen {
		g.publish(d)
	} else {
		g.held = append(g.held, d)
	}
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, d := range g.held {
		g.publish(d)
	}
	g.isOpen, g.held = true, nil
}
