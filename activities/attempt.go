package activities

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/workflow"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

type attempt struct {
	*Activities
	in        GenerateInput
	key       attemptKey
	info      activity.Info // of the activity that started it
	trace     string        // traceparent; empty: it is not traced
	lost      *LostAttempt  // nil: none
	startedAt time.Time
	repair    *repair // nil: none
	cancel    context.CancelCauseFunc

	done   chan struct{} // closed when result and err are set
	result GenerateResult
	err    error

	// The goroutine of the attempt owns these fields.
	broadcast    Broadcast
	announcement *announcement // nil before the request is sent
	retry        reducer.RetryConfig
	hasFallback  bool // a failure is followed by attempts with the fallback provider
	messages     int  // in the conversation
	tools        toolbox
	offered      *event.ToolsOffered // that the log lacks; nil: none
	nextRepair   *repair             // that this attempt requests from the next one; nil: none
	committed    logEnd              // newest known end of the log that the server has persisted
	keep         event.Reasoning
	guard        *guard            // nil: no hooks
	isBudgeted   bool              // a budget allowed the request
	omitted      int               // covered messages that the summary lacks
	refused      *reducer.Overflow // nil: no rejection of the input as too long, or its tokens could not be counted

	measured measurement

	mu          sync.Mutex // guards the fields below
	attempted   Attempted
	model       Model                 // nil before the request is sent
	deadline    time.Time             // zero before the request is sent
	newestInput int                   // counter of the newest input of stop messages
	stopHooks   context.CancelFunc    // cancels the hooks before the request; nil while none run
	waiters     []*workflow.Execution // runs whose activities wait for the result
	current     workflow.Execution    // the newest waiter
	changed     chan struct{}         // closed when current changes
	orphaned    *time.Timer           // cancels the attempt if no activity adopts it; nil while one waits
}

func (a *attempt) run(ctx context.Context) {
	defer a.cancel(nil)
	defer close(a.done)
	defer a.running.removeLater(a)
	defer func() {
		if p := recover(); p != nil {
			a.err = fmt.Errorf("generate: panic: %v", p)
			activity.GetLogger(ctx).Error("attempt panicked", "request", a.in.RequestID, "attempt", a.attempted.Attempt, "panic", event.Redact(fmt.Sprint(p), 2000), "stack", string(debug.Stack()))
		}
	}()
	a.measured.Running.Add(1)
	defer a.measured.Running.Add(-1)
	a.result, a.err = a.generate(ctx)
	a.measured.ended(a, a.result, a.err)
	a.traceResult()
}

func (a *attempt) generate(ctx context.Context) (result GenerateResult, err error) {
	a.broadcast = a.options.Stream.Broadcast(
		StreamAttempt{ContextName: a.in.ContextName, RequestID: a.in.RequestID, Number: a.attempted.Attempt, After: a.in.Through}, a.onStop)
	defer a.broadcast.Close()
	defer func() { a.finishAnnouncement(ctx, err) }()
	p, err := a.admit(ctx)
	ctx, cancel := context.WithDeadlineCause(ctx, p.deadline, errTimeout)
	defer cancel()
	if err != nil {
		return a.outcome(ctx, Answer{}, err)
	}
	if p.overflow != nil {
		return a.tooLong(*p.overflow), nil
	}
	a.mu.Lock()
	a.model = p.model
	a.mu.Unlock()
	a.announce(ctx, p.policy)
	a.measured.sent(a)
	size, reasoned := 0, 0
	a.keep = p.request.Settings.Reasoning
	streaming, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	publish, passed := a.deltas()
	defer a.guard.startBeside(ctx, stop, passed)()
	answer, err := p.model.Stream(streaming, p.request, func(delta Delta) {
		a.measured.delta()
		if delta.IsReasoning {
			if reasoned += len(delta.Text); a.keep == event.ReasoningOff || reasoned > event.MaxReasoningBytes {
				return
			}
		} else if size += len(delta.Text); size > event.MaxAnswerBytes {
			a.cancel(errTooLong)
			return
		}
		publish(delta)
	})
	a.measured.streamed()
	p.settle(answer.Usage)
	a.learn(ctx, p, err)
	return a.conclude(ctx, answer, err)
}

type prepared struct {
	deadline time.Time // of the attempt
	policy   event.Policy
	session  reducer.Session
	model    Model
	request  ModelRequest
	overflow *reducer.Overflow // of a request that is too long; nil: it is not
	settle   func(event.Usage) // settles the reservations; set if the request may be sent
}

// admit prepares the request and reserves its usage. It repeats both if input arrives while the request
// waits for a budget. That wait does not count towards the deadline.
func (a *attempt) admit(ctx context.Context) (p prepared, err error) {
	maxWait := milliseconds(a.in.TimeoutMs) + lostGrace
	for n := 1; ; n++ {
		if err = a.prepare(ctx, &p); err != nil {
			return p, err
		}
		r, err := a.measure(ctx, &p)
		if err != nil || p.overflow != nil {
			return p, err
		}
		began := time.Now()
		p.settle, err = a.reserve(ctx, r, maxWait)
		waited := time.Since(began)
		p.deadline, maxWait = p.deadline.Add(waited), maxWait-waited
		if err != nil || n == maxPreparations || waited < reservationRetry || !a.lacksInput() {
			return p, err
		}
		p.settle(event.Usage{})
	}
}

// measure sets the overflow of the request, or returns the reservations that it needs.
func (a *attempt) measure(ctx context.Context, p *prepared) (r reservations, err error) {
	ctx, cancel := context.WithDeadlineCause(ctx, p.deadline, errTimeout)
	defer cancel()
	if p.overflow, err = a.overflow(ctx, *p); err != nil || p.overflow != nil {
		return r, err
	}
	return a.reservations(ctx, p.session, p.model, &p.request)
}

// prepare debounces the request, and then runs the hooks that precede a request. It repeats both if input arrives
// while the hooks run.
func (a *attempt) prepare(ctx context.Context, p *prepared) (err error) {
	for range maxPreparations {
		var session reducer.Session
		session, err = a.debounce(ctx)
		if p.deadline.IsZero() {
			p.deadline = time.Now().Add(milliseconds(a.in.TimeoutMs)) // the quiet period does not count
		}
		if err != nil {
			return err
		}
		if err = a.prepareFrom(ctx, session, p); !a.hasNewInput() {
			break
		}
	}
	return err
}

// maxPreparations bounds the work for a sender that writes faster than the hooks answer.
const maxPreparations = 10

func (a *attempt) prepareFrom(ctx context.Context, session reducer.Session, p *prepared) (err error) {
	config := session.Reduced.Config
	p.policy, p.session = config.Delivery.Policy, session
	if p.model, err = a.resolve(config); err != nil {
		return err
	}
	if a.tools, err = a.offer(ctx, session); err != nil {
		return err
	}
	providerID, modelName := p.model.ID()
	a.tools = a.tools.forModel(session.Reduced, providerID, modelName)
	messages, settings := session.Reduced.ForModel(reducer.MessagesOf(session), providerID, modelName), reducer.SettingsOf(session)
	a.messages = len(messages)
	if c := a.in.Compaction; c != nil {
		settings = summarySettings(settings, c.Window)
		if messages, err = a.summaryMessages(ctx, p.model, ModelRequest{Messages: messages, Settings: settings, Tools: a.tools.definitions()}); err != nil {
			return err
		}
	}
	if messages, settings, err = a.runBefore(ctx, p.deadline, messages, settings); err != nil {
		return err
	}
	if settings, err = a.tools.choose(settings); err != nil {
		return err
	}
	p.request = ModelRequest{
		Conversation: a.in.ContextName,
		Messages:     messages,
		FirstToken:   milliseconds(config.FirstTokenMs),
		Stall:        milliseconds(config.StallMs),
		Settings:     settings,
		Repair:       a.repair.of(a.messages),
		Tools:        a.tools.definitions(),
	}
	return p.model.Check(p.request)
}

func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

func (a *attempt) resolve(config reducer.Config) (Model, error) {
	provider := config.Primary
	if a.in.Fallback {
		if config.Fallback == nil {
			return nil, fmt.Errorf("context %s has no fallback provider", a.in.ContextName)
		}
		provider = *config.Fallback
	}
	a.setModel(provider.ProviderID, provider.Model)
	model, err := a.options.Models.Resolve(provider)
	if err == nil {
		a.setModel(model.ID())
	}
	return model, err
}

func (a *attempt) setModel(providerID, model string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.attempted.ProviderID, a.attempted.Model = providerID, model
}

// onStop ignores new input that the attempt includes or, while it is unsent, will include.
func (a *attempt) onStop(stop Stop) {
	if a.in.Compaction != nil && stop.Reason == event.ReasonNewUserInput {
		return // the request after the summary includes it
	}
	if stop.Reason != event.ReasonNewUserInput || a.isOutdated(stop.Through) {
		a.measured.stopped()
		a.cancel(stopped{stop.Reason})
	}
}

func (a *attempt) isOutdated(through string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.newestInput = max(a.newestInput, event.Counter(through))
	if a.stopHooks != nil && a.newestInput > event.Counter(a.attempted.Through) {
		a.stopHooks()
	}
	return a.attempted.Sent && event.Counter(through) > event.Counter(a.attempted.Through)
}

func (a *attempt) apply(check wire.StopCheck) {
	switch {
	case a.isStale(event.Counter(check.LastEventID)):
	case check.RequestID != a.in.RequestID:
		a.cancel(errObsolete)
	case check.Stop != "":
		a.onStop(Stop{RequestID: check.RequestID, Reason: check.Stop, Through: check.Trigger})
	}
}

func (a *attempt) isStale(eventCount int) bool { return eventCount < event.Counter(a.in.Through) }
