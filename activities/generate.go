package activities

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

// Timing of Generate.
const (
	// HeartbeatTimeout is how long a worker may be silent before its request
	// is given to another.
	HeartbeatTimeout = 3 * time.Second
	// heartbeatEvery is how often it says that it is alive, and looks whether
	// the request is still wanted, in case the hint to stop was lost.
	heartbeatEvery = time.Second
	// maxRetryAfter is the longest that a provider may ask to wait. Beyond it
	// the request fails, or the fallback takes over.
	maxRetryAfter = 5 * time.Minute
	// announceAfter is how long a first attempt lasts before the workflow is
	// told that it was sent. The result says so too, and telling costs the server
	// as much as half a turn, so a short answer does without. Until then the
	// workflow tells of new input, see [reducer.TellRequest].
	announceAfter = 250 * time.Millisecond
	// announceTimeout is how long the workflow is tried to be told that a
	// request was sent.
	announceTimeout = 5 * time.Second
	// stickyPatience is how long the worker that cached a workflow has to answer
	// a query before another worker is asked.
	stickyPatience = 300 * time.Millisecond
)

// MaxAnswerBytes is how long an answer may be. A longer one ends there, with
// the finish reason "length": it could not be recorded.
const MaxAnswerBytes = 768 << 10

// GenerateInput refers to a request. The conversation and the settings come
// from the session when the request is sent.
type GenerateInput struct {
	ContextName string `json:"contextName"`
	RequestID   string `json:"requestId"`
	// FirstAttempt is the number of the first attempt of this activity.
	FirstAttempt int `json:"firstAttempt"`
	// MaxAttempts is how many attempts it has.
	MaxAttempts int  `json:"maxAttempts"`
	Fallback    bool `json:"fallback,omitempty"`
	// Through is the newest event when the request was made: a session that
	// does not know it is behind.
	Through string `json:"throughEventId"`
	// TimeoutMs bounds each attempt. It does not come from the session, since
	// the activity's own timeouts follow from what it was at the beginning.
	TimeoutMs int64 `json:"timeoutMs"`
	// Adopt continues attempt FirstAttempt, which an activity of the previous
	// run started in this process. Later attempts are made as usual.
	Adopt bool `json:"adopt,omitempty"`
}

// Attempted says what an attempt was. What is not known yet is zero.
type Attempted struct {
	Attempt int `json:"attempt"`
	// Sent says that the request was sent to the provider.
	Sent       bool   `json:"sent,omitempty"`
	Through    string `json:"throughEventId,omitempty"`
	ProviderID string `json:"providerId,omitempty"`
	Model      string `json:"model,omitempty"`
}

// GenerateResult is the result of a request that did not fail.
type GenerateResult struct {
	Attempted
	Outcome      reducer.Outcome `json:"outcome"`
	Text         string          `json:"text,omitempty"`
	Reason       event.Reason    `json:"reason,omitempty"`
	DurationMs   int64           `json:"durationMs,omitempty"`
	InputTokens  int             `json:"inputTokens,omitempty"`
	OutputTokens int             `json:"outputTokens,omitempty"`
	FinishReason string          `json:"finishReason,omitempty"`
}

// Why a generation ends before its answer does.
var (
	errShutdown = errors.New("the worker is shutting down")
	errTimeout  = errors.New("the attempt took longer than the timeout of the context")
	errTooLong  = errors.New("the answer is too long to be recorded")
	errMovedOn  = errors.New("the session has moved on")
	errOrphaned = errors.New("the run continued as new and did not adopt the request")
)

// stopped is the cause of a generation that someone stopped.
type stopped struct{ reason event.Reason }

func (s stopped) Error() string { return "stopped: " + string(s.reason) }

// Generate waits for the quiet period, asks the model, and says what it says as
// it says it.
//
// Being stopped is a result and not an error, so that what was said is kept.
// When the worker shuts down the result is that the request was returned. An
// error is one attempt that failed: Temporal makes the next, unless it is marked
// as not retryable; its details are an [Attempted].
func (a *Activities) Generate(ctx context.Context, in GenerateInput) (GenerateResult, error) {
	info := activity.GetInfo(ctx)
	number := in.FirstAttempt + int(info.Attempt) - 1
	key := generationKey{in.ContextName, in.RequestID, number}
	if in.Adopt && info.Attempt == 1 {
		g := a.running.find(key)
		if g == nil {
			// It ended before it was adopted. The session makes the next attempt.
			return GenerateResult{Attempted: Attempted{Attempt: number}, Outcome: reducer.Returned}, nil
		}
		return g.join(ctx, g.attach(info.WorkflowExecution))
	}
	select {
	case <-a.options.HandBack:
		// An attempt that starts while the worker shuts down is neither sent nor announced.
		return GenerateResult{Attempted: Attempted{Attempt: number}, Outcome: reducer.Returned}, nil
	default:
	}
	g := &generation{Activities: a, in: in, key: key, info: info, began: time.Now(), ended: make(chan struct{})}
	g.attempted.Attempt = number
	// The generation outlives this activity when the run continues as new.
	detached, end := context.WithCancelCause(context.WithoutCancel(ctx))
	g.end = end
	j := g.attach(info.WorkflowExecution)
	a.running.add(g)
	go g.perform(detached)
	return g.join(ctx, j)
}

// perform makes the attempt.
func (g *generation) perform(ctx context.Context) {
	defer g.end(nil)
	defer close(g.ended)
	defer g.running.removeLater(g)
	defer func() {
		if p := recover(); p != nil {
			g.err = fmt.Errorf("generate: panic: %v", p)
			activity.GetLogger(ctx).Error("Generate panicked", "request", g.in.RequestID, "panic", p, "stack", string(debug.Stack()))
		}
	}()
	g.result, g.err = g.attempt(ctx)
}

func (g *generation) attempt(ctx context.Context) (result GenerateResult, err error) {
	in := g.in
	g.stream = g.options.Stream.Broadcast(
		StreamAttempt{ContextName: in.ContextName, RequestID: in.RequestID, Number: g.attempted.Attempt}, g.onStop)
	defer g.stream.Close()
	defer func() { g.told(err) }()
	session, err := g.settle(ctx)
	if err != nil {
		return g.outcome(ctx, Answer{}, err)
	}
	model, err := g.resolve(session)
	if err != nil {
		return g.outcome(ctx, Answer{}, err)
	}

	config := session.Reduced.Config
	g.sent(ctx, config.Delivery.Policy)
	timeout := time.Duration(in.TimeoutMs) * time.Millisecond
	attempt, cancel := context.WithTimeoutCause(ctx, timeout, errTimeout)
	defer cancel()
	size := 0
	answer, err := model.Stream(attempt, ModelRequest{
		Conversation: in.ContextName,
		Messages:     session.Reduced.Messages,
		FirstToken:   time.Duration(config.FirstTokenMs) * time.Millisecond,
		Stall:        time.Duration(config.StallMs) * time.Millisecond,
	}, func(text string) {
		if size += len(text); size > MaxAnswerBytes {
			g.end(errTooLong)
			return
		}
		g.stream.Publish(text)
	})
	return g.outcome(attempt, answer, err)
}

// generation is one attempt at work.
type generation struct {
	*Activities
	in     GenerateInput
	key    generationKey
	info   activity.Info // of the activity that started it
	began  time.Time
	end    context.CancelCauseFunc
	stream Broadcast

	// ended is closed when result and err are set.
	ended  chan struct{}
	result GenerateResult
	err    error

	mu        sync.Mutex // guards what follows, up to orphaned
	attempted Attempted
	// hinted is the newest input that a hint to stop was about.
	hinted int
	// joined are the activities that wait for the result. run is that of the
	// newest one, and changed is closed when it changes.
	joined  []*joined
	run     workflow.Execution
	changed chan struct{}
	// orphaned ends the generation when no activity adopts it; nil while one
	// waits.
	orphaned *time.Timer
	retry    reducer.RetryConfig
	fallback bool // there is another provider to take over

	telling     sync.WaitGroup // tells the workflow that the request was sent
	tellNow     context.CancelFunc
	stopTelling context.CancelFunc
}

// onStop hears the hint to stop. New input is no reason to stop when the model
// was shown it, or will be because the request is still in its quiet period.
func (g *generation) onStop(stop Stop) {
	if stop.Reason == event.ReasonNewUserInput && !g.isOutdated(stop.Through) {
		return
	}
	g.end(stopped{stop.Reason})
}

func (g *generation) isOutdated(through string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.hinted = max(g.hinted, event.Counter(through))
	return g.attempted.Sent && event.Counter(through) > event.Counter(g.attempted.Through)
}

// look ends the attempt when the session wants it to.
func (g *generation) look(wish wire.StopCheck) {
	switch {
	case event.Counter(wish.LastEventID) < event.Counter(g.in.Through):
		// The session is behind.
	case wish.RequestID != g.in.RequestID:
		g.end(errMovedOn)
	case wish.Stop != "":
		g.onStop(Stop{RequestID: wish.RequestID, Reason: wish.Stop, Through: wish.Trigger})
	}
}

// wish is what the session of a run wants now.
func (g *generation) wish(ctx context.Context, w workflow.Execution) (wire.StopCheck, error) {
	if wish, ok := g.options.Cache.wish(w.RunID); ok && event.Counter(wish.LastEventID) >= event.Counter(g.in.Through) {
		return wish, nil
	}
	var wish wire.StopCheck
	value, err := g.options.Temporal.QueryWorkflow(ctx, w.ID, w.RunID, wire.QueryStopCheck)
	if err != nil {
		return wish, err
	}
	return wish, value.Get(&wish)
}

// session is the newest session of the workflow, from this process when it is
// here and not behind, else by query.
func (g *generation) session(ctx context.Context) (reducer.Session, error) {
	w, _ := g.execution()
	session, ok := g.options.Cache.get(w.RunID)
	if ok && session.EventCount >= event.Counter(g.in.Through) {
		return session, nil
	}
	value, err := g.query(ctx, w, wire.QuerySnapshot)
	if err != nil {
		return reducer.Session{}, fmt.Errorf("ask context %s for its session: %w", g.in.ContextName, err)
	}
	session = reducer.Session{}
	if err := value.Get(&session); err != nil {
		return reducer.Session{}, fmt.Errorf("read the session of context %s: %w", g.in.ContextName, err)
	}
	return session, nil
}

// query asks the workflow. When the worker that cached it has died, the server
// would wait seconds for that worker before it asks another.
func (g *generation) query(ctx context.Context, w workflow.Execution, query string) (converter.EncodedValue, error) {
	if g.info.Attempt > 1 {
		soon, cancel := context.WithTimeout(ctx, stickyPatience)
		value, err := g.options.Temporal.QueryWorkflow(soon, w.ID, w.RunID, query)
		cancel()
		if err == nil || ctx.Err() != nil || soon.Err() == nil {
			return value, err
		}
		// An error leaves things as they are.
		_, _ = g.options.Temporal.WorkflowService().ResetStickyTaskQueue(ctx, &workflowservice.ResetStickyTaskQueueRequest{
			Namespace: g.info.Namespace, Execution: &commonpb.WorkflowExecution{WorkflowId: w.ID, RunId: w.RunID},
		})
	}
	return g.options.Temporal.QueryWorkflow(ctx, w.ID, w.RunID, query)
}

// sessionOrLog is the newest session, or, when it cannot be asked for, what the
// log amounts to: the workflow's worker may be away, or the session larger than
// the answer to a query may be. Whether the request is to stop is not in the log.
func (g *generation) sessionOrLog(ctx context.Context) (reducer.Session, error) {
	session, err := g.session(ctx)
	if err == nil || ctx.Err() != nil {
		return session, err
	}
	var events []event.Event
	w, _ := g.execution()
	for e, logErr := range g.log.Run(ctx, g.in.ContextName, w.RunID, "") {
		if logErr != nil {
			return session, errors.Join(err, logErr)
		}
		events = append(events, e)
	}
	session = reducer.Load(g.in.ContextName, g.options.Reduce, events...)
	if session.Request == nil {
		// It is recorded when it is first sent.
		session.Request = &reducer.Request{ID: g.in.RequestID}
	}
	return session, nil
}

// settle returns the session once no input has come for the quiet period, or
// the maximum wait is over.
func (g *generation) settle(ctx context.Context) (reducer.Session, error) {
	session, err := g.sessionOrLog(ctx)
	for err == nil {
		g.look(wire.StopCheckOf(session))
		delivery := session.Reduced.Config.Delivery
		quiet := time.Duration(delivery.QuietPeriodMs)*time.Millisecond - g.now().Sub(session.TriggerAt)
		left := time.Duration(delivery.MaxWaitMs)*time.Millisecond - time.Since(g.began)
		if err = context.Cause(ctx); err != nil || min(quiet, left) <= 0 {
			break
		}
		if err = sleep(ctx, min(quiet, left)); err != nil {
			break
		}
		session, err = g.sessionOrLog(ctx)
	}
	if err == nil {
		g.retry = session.Reduced.Config.Retry
		g.fallback = session.Reduced.Config.Fallback != nil && !g.in.Fallback
		g.mu.Lock()
		g.attempted.Through = session.LastEventID()
		g.mu.Unlock()
	}
	return session, err
}

// now is the time on the server's clock, by which the session's events are
// dated; this machine's may differ.
func (g *generation) now() time.Time { return g.info.StartedTime.Add(time.Since(g.began)) }

func (g *generation) resolve(session reducer.Session) (Model, error) {
	provider := session.Reduced.Config.Primary
	if g.in.Fallback {
		if session.Reduced.Config.Fallback == nil {
			return nil, fmt.Errorf("context %s has no fallback provider", g.in.ContextName)
		}
		provider = *session.Reduced.Config.Fallback
	}
	g.mu.Lock()
	g.attempted.ProviderID, g.attempted.Model = provider.ProviderID, provider.Model
	g.mu.Unlock()
	model, err := g.options.Models.Resolve(provider)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	g.attempted.ProviderID, g.attempted.Model = model.ID()
	g.mu.Unlock()
	return model, nil
}

// sent notes that the request goes out and tells the workflow, without waiting.
func (g *generation) sent(ctx context.Context, policy event.Policy) {
	g.mu.Lock()
	g.attempted.Sent = true
	// What an attempt after the first follows from is to be seen; other policies
	// go by whether the request was sent; and a hint may not reach us, or have
	// come a moment ago.
	atOnce := g.attempted.Attempt > 1 || !reducer.RuleOf(policy).Interrupts ||
		!g.options.Stream.Connected() || g.hinted > event.Counter(g.attempted.Through)
	news := wire.RequestStarted{
		RequestID: g.in.RequestID, Attempt: g.attempted.Attempt, Through: g.attempted.Through,
		ProviderID: g.attempted.ProviderID, Model: g.attempted.Model, Worker: g.options.WorkerQueue,
	}
	g.mu.Unlock()
	g.stream.SetThrough(news.Through)
	quiet, tellNow := context.WithTimeout(context.WithoutCancel(ctx), announceAfter)
	g.tellNow = tellNow
	if atOnce {
		tellNow()
	}
	ctx, g.stopTelling = context.WithTimeout(context.WithoutCancel(ctx), announceAfter+announceTimeout)
	g.telling.Go(func() {
		select {
		case <-quiet.Done():
		case <-ctx.Done():
			return
		}
		err := g.tell(ctx, news)
		if err != nil && !errors.Is(ctx.Err(), context.Canceled) {
			activity.GetLogger(ctx).Warn("The workflow was not told that its request was sent", "request", news.RequestID, "error", err)
		}
	})
}

// tell signals the run that the request was sent. When that run continues as
// new, it signals the run that adopts the generation.
func (g *generation) tell(ctx context.Context, news wire.RequestStarted) error {
	for {
		w, changed := g.execution()
		err := g.options.Temporal.SignalWorkflow(ctx, w.ID, w.RunID, wire.SignalRequestStarted, news)
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

// told makes sure that the workflow knows of the attempt when it ends. A result
// says all that the signal does, so it need not wait; the error of an attempt
// with another to come reaches nobody.
func (g *generation) told(err error) {
	if g.stopTelling == nil {
		return
	}
	if err == nil {
		g.stopTelling()
	} else {
		g.tellNow()
	}
	g.telling.Wait()
	g.tellNow()
	g.stopTelling()
}
