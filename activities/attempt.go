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
	hasFallback  bool // another provider can take over
	messages     int  // in the conversation
	tools        toolbox
	nextRepair   *repair // that this attempt requests from the next one; nil: none
	committed    logEnd  // newest known end of the log that the server has persisted
	keep         event.Reasoning

	usage usageMeter

	mu          sync.Mutex // guards the fields below
	attempted   Attempted
	newestInput int                   // counter of the newest input of stop messages
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
			activity.GetLogger(ctx).Error("Generate panicked", "request", a.in.RequestID, "panic", p, "stack", string(debug.Stack()))
		}
	}()
	a.result, a.err = a.generate(ctx)
}

func (a *attempt) generate(ctx context.Context) (result GenerateResult, err error) {
	a.broadcast = a.options.Stream.Broadcast(
		StreamAttempt{ContextName: a.in.ContextName, RequestID: a.in.RequestID, Number: a.attempted.Attempt, After: a.in.Through}, a.onStop)
	defer a.broadcast.Close()
	defer func() { a.finishAnnouncement(ctx, err) }()
	session, err := a.debounce(ctx)
	if err != nil {
		return a.outcome(ctx, Answer{}, err)
	}
	config := session.Reduced.Config
	model, err := a.resolve(config)
	if err != nil {
		return a.outcome(ctx, Answer{}, err)
	}

	if a.tools, err = a.offer(ctx, config.Tools); err != nil {
		return a.outcome(ctx, Answer{}, err)
	}
	settings, err := a.tools.choose(reducer.SettingsOf(session))
	if err != nil {
		return a.outcome(ctx, Answer{}, err)
	}
	messages := reducer.MessagesOf(session)
	request := ModelRequest{
		Conversation: a.in.ContextName,
		Messages:     messages,
		FirstToken:   milliseconds(config.FirstTokenMs),
		Stall:        milliseconds(config.StallMs),
		Settings:     settings,
		Repair:       a.repair.of(messages),
		Tools:        a.tools.definitions(),
	}
	if err := model.Check(request); err != nil {
		return a.outcome(ctx, Answer{}, err)
	}
	a.usage.start(model)
	a.announce(ctx, config.Delivery.Policy)
	ctx, cancel := context.WithTimeoutCause(ctx, milliseconds(a.in.TimeoutMs), errTimeout)
	defer cancel()
	size, reasoned := 0, 0
	a.keep = request.Settings.Reasoning
	a.messages = len(request.Messages)
	answer, err := model.Stream(ctx, request, func(delta Delta) {
		if delta.IsReasoning {
			if reasoned += len(delta.Text); a.keep == event.ReasoningOff || reasoned > event.MaxReasoningBytes {
				return
			}
		} else if size += len(delta.Text); size > MaxAnswerBytes {
			a.cancel(errTooLong)
			return
		}
		a.broadcast.Publish(delta)
	})
	return a.outcome(ctx, answer, err)
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

// onStop ignores new input that the model was shown, or that an unsent attempt will include.
func (a *attempt) onStop(stop Stop) {
	if stop.Reason != event.ReasonNewUserInput || a.isOutdated(stop.Through) {
		a.cancel(stopped{stop.Reason})
	}
}

func (a *attempt) isOutdated(through string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.newestInput = max(a.newestInput, event.Counter(through))
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
