package activities_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

// bank is a server with the workflows of budgets, on one day.
type bank struct {
	server
	mu       sync.Mutex
	ledgers  map[string]reducer.Ledger
	updates  int
	failures int           // of the next updates
	gate     chan struct{} // holds updates until it is closed; nil: none
	running  chan struct{} // receives when an update is held; nil: none
	isSlow   bool          // accepts updates only when their timeout has passed
	timeout  time.Duration // of updates; 0: the default
	released chan struct{} // receives after each release; nil: none is expected
	denied   chan struct{} // receives after each denied reservation; nil: nobody waits
	late     time.Duration // how far the clock is ahead
	stops    stops         // receives the handler of stop messages; nil: none are sent
	model    *caller       // of the newest attempt
}

// stops is a stream that passes the handler of stop messages on.
type stops chan func(activities.Stop)

func (s stops) Broadcast(_ activities.StreamAttempt, onStop func(activities.Stop)) activities.Broadcast {
	s <- onStop
	return noDeltas{}
}

func (stops) Connected() bool                                    { return true }
func (stops) Progress(string, event.ToolProgress)                {}
func (stops) Stop(context.Context, string, activities.Stop) bool { return false }

type noDeltas struct{}

func (noDeltas) SetThrough(string)        {}
func (noDeltas) Publish(activities.Delta) {}
func (noDeltas) Close()                   {}

const bankDay = "2026-01-02"

func newBank(session reducer.Session) *bank {
	b := &bank{ledgers: map[string]reducer.Ledger{}}
	b.session = func(int) (reducer.Session, error) { return session, nil }
	return b
}

func (b *bank) NewWithStartWorkflowOperation(client.StartWorkflowOptions, any, ...any) client.WithStartWorkflowOperation {
	return nil
}

func (b *bank) UpdateWithStartWorkflow(ctx context.Context, o client.UpdateWithStartWorkflowOptions) (client.WorkflowUpdateHandle, error) {
	if b.gate != nil {
		b.running <- struct{}{}
		select {
		case <-b.gate:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if b.isSlow {
		<-ctx.Done()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.updates++
	if b.failures > 0 {
		b.failures--
		return nil, errors.New("the workflow has completed")
	}
	out := wire.Reserved{Day: bankDay}
	ledger := b.ledgers[o.UpdateOptions.WorkflowID].On(bankDay).Expire(time.Now().Add(b.late))
	for _, r := range o.UpdateOptions.Args[0].(wire.Reserve).Reservations {
		answer := wire.ReservationState{Used: ledger.Used()}
		if ledger, answer.Granted = ledger.Reserve(r); !answer.Granted {
			answer.IsGrantableLater = ledger.IsGrantableLater(r)
			if b.denied != nil {
				b.denied <- struct{}{}
			}
		}
		out.Answers = append(out.Answers, answer)
	}
	b.ledgers[o.UpdateOptions.WorkflowID] = ledger
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return reservedHandle{result: out}, nil
}

type reservedHandle struct {
	client.WorkflowUpdateHandle
	result wire.Reserved
}

func (h reservedHandle) Get(_ context.Context, out any) error {
	*out.(*wire.Reserved) = h.result
	return nil
}

func (b *bank) SignalWorkflow(ctx context.Context, id, run, name string, input any) error {
	if name != wire.SignalSettle {
		return b.server.SignalWorkflow(ctx, id, run, name, input)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	in := input.(wire.Settle)
	if in.LostUntil.IsZero() {
		b.ledgers[id] = b.ledgers[id].Settle(in.Key, in.Used)
	} else {
		b.ledgers[id] = b.ledgers[id].Lose(in.Key, reducer.LostUsage{Used: in.Used, Until: in.LostUntil})
	}
	return nil
}

func (b *bank) SignalWithStartWorkflow(_ context.Context, id, _ string, input any, _ client.StartWorkflowOptions, _ any, _ ...any) (client.WorkflowRun, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ledgers[id] = b.ledgers[id].Release(input.(wire.Settle).Key)
	b.released <- struct{}{}
	return nil, nil
}

// used returns what is spent, and requires that nothing is reserved.
func (b *bank) used(t *testing.T, id string) int64 {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	require.Empty(t, b.ledgers[id].Reserved)
	return b.ledgers[id].Spent.Tokens
}

// generate makes an attempt with labels, for a model that needs and uses tokens.
func (b *bank) generate(budgets []activities.LabelBudget, needs, uses int, change ...func(*activities.GenerateInput, *testsuite.TestActivityEnvironment)) error {
	session, _ := b.session(0)
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestActivityEnvironment()
	env.SetTestTimeout(time.Minute)
	model := &caller{needs: event.Usage{InputTokens: needs}, answer: activities.Answer{Text: "Hi", FinishReason: "stop", Usage: event.Usage{InputTokens: uses}}}
	b.mu.Lock()
	b.model = model
	b.mu.Unlock()
	options := activities.Options{Temporal: b, Models: model, Budgets: budgets}
	if b.stops != nil {
		options.Stream = b.stops
	}
	registered := activities.New(options)
	if b.timeout > 0 {
		activities.SetReserveTimeout(registered, b.timeout)
	}
	env.RegisterActivity(registered)
	in := activities.GenerateInput{
		ContextName: "demo", RequestID: "demo:r0001", FirstAttempt: 1, MaxAttempts: 4, Through: session.LastEventID(), ThroughAt: session.LastEventAt, TimeoutMs: 30_000,
	}
	for _, c := range change {
		c(&in, env)
	}
	_, err := env.ExecuteActivity(acts.Generate, in)
	return err
}

func labelled(labels map[string]string) reducer.Session {
	return newSession(event.SetRequestSettings{Labels: labels})
}

func limited(label, value string, tokens int64) activities.LabelBudget {
	return activities.LabelBudget{Label: label, Value: value, Limit: event.Budget{Tokens: &tokens}}
}

func TestTheUsageOfALabelIsReservedAndSettled(t *testing.T) {
	b := newBank(labelled(map[string]string{"team": "support", "user": "ann"}))
	budgets := []activities.LabelBudget{limited("team", "", 1), limited("team", "support", 100), limited("user", "", 1000), limited("room", "", 0)}
	require.NoError(t, b.generate(budgets, 100, 30))
	require.Equal(t, int64(30), b.used(t, "budget:team=support"))
	require.Equal(t, int64(30), b.used(t, "budget:user=ann"))
	require.Len(t, b.ledgers, 2)

	err := b.generate(budgets, 71, 30)
	failed, details := unsent(t, err)
	require.Equal(t, event.FailureBudgetExceeded, details.Kind)
	require.Equal(t, &event.BudgetExceeded{
		RequestID: "demo:r0001", Budget: "team=support", Day: bankDay, Limit: event.Budget{Tokens: new(int64(100))},
		Used: event.Amount{Tokens: 30}, Wanted: event.Amount{Tokens: 71},
	}, details.Exceeded)
	require.Contains(t, failed.Message(), "budget exceeded: team=support on 2026-01-02: limit 100 tokens, used 30, wanted 71 (lower maxTokens, wait until")
	require.Equal(t, int64(30), b.used(t, "budget:team=support"))
}

// Each attempt has its own process, and uses what it reserved, so the order does not matter.
func TestConcurrentAttemptsUseABudgetUpAndNoMore(t *testing.T) {
	b := newBank(labelled(map[string]string{"team": "support"}))
	var all sync.WaitGroup
	var answered atomic.Int64
	for i := range 50 {
		all.Go(func() {
			err := b.generate([]activities.LabelBudget{limited("team", "", 1050)}, 100, 100, func(in *activities.GenerateInput, _ *testsuite.TestActivityEnvironment) {
				in.FirstAttempt = i + 1
			})
			if err == nil {
				answered.Add(1)
				return
			}
			assert.ErrorContains(t, err, "budget exceeded: team=support on 2026-01-02: limit 1050 tokens")
		})
	}
	all.Wait()
	require.Equal(t, int64(10), answered.Load())
	require.Equal(t, int64(1000), b.used(t, "budget:team=support"))
}

func TestAnAttemptThatOneBudgetDeniesUsesNoOther(t *testing.T) {
	b := newBank(labelled(map[string]string{"team": "support", "user": "ann"}))
	err := b.generate([]activities.LabelBudget{limited("team", "", 100), limited("user", "", 10)}, 50, 30)
	_, details := unsent(t, err)
	require.Equal(t, "user=ann", details.Exceeded.Budget)
	require.Zero(t, b.used(t, "budget:team=support"))
}

func TestRequestsWithoutALimitedLabelReserveNothing(t *testing.T) {
	b := newBank(labelled(map[string]string{"team": "sales", "other": "x"}))
	require.NoError(t, b.generate([]activities.LabelBudget{limited("team", "support", 0)}, 50, 30))
	require.Zero(t, b.updates)
}

func TestALimitOfTheCostOfALabelRequiresAPrice(t *testing.T) {
	b := newBank(labelled(map[string]string{"team": "support", "user": "ann"}))
	err := b.generate([]activities.LabelBudget{limited("team", "", 100), {Label: "user", Limit: event.Budget{CostMicros: new(int64(5))}}}, 50, 30)
	failed, details := unsent(t, err)
	require.Equal(t, event.FailureConfiguration, details.Kind)
	require.Contains(t, failed.Message(), "budget user=ann: the price of openai scripted is unknown")
	require.Zero(t, b.used(t, "budget:team=support"))
}

func TestAReservationIsRepeatedWhenTheWorkflowCompletes(t *testing.T) {
	b := newBank(labelled(map[string]string{"team": "support"}))
	b.failures = 2
	require.NoError(t, b.generate([]activities.LabelBudget{limited("team", "", 100)}, 50, 30))
	require.Equal(t, 3, b.updates)
	require.Equal(t, int64(30), b.used(t, "budget:team=support"))
}

func TestAnAttemptIsRetriedIfTheBudgetCannotBeReached(t *testing.T) {
	b := newBank(labelled(map[string]string{"team": "support"}))
	b.failures = 1 << 30 // until the timeout
	b.timeout, b.released = 10*time.Millisecond, make(chan struct{}, 1)
	err := b.generate([]activities.LabelBudget{limited("team", "", 100)}, 50, 30)
	var failed *temporal.ApplicationError
	require.ErrorAs(t, err, &failed)
	require.False(t, failed.NonRetryable())
	require.Contains(t, failed.Message(), "reserve the budget team=support: the workflow has completed")
	<-b.released
}

func TestAReservationThatIsAcceptedAfterItsTimeoutIsReleased(t *testing.T) {
	b := newBank(labelled(map[string]string{"team": "support"}))
	b.isSlow, b.timeout, b.released = true, 10*time.Millisecond, make(chan struct{}, 1)
	require.Error(t, b.generate([]activities.LabelBudget{limited("team", "", 100)}, 50, 30))
	require.Len(t, b.released, 1, "before the next attempt")
	require.Equal(t, 1, b.updates)
	require.Zero(t, b.used(t, "budget:team=support"))
}

func TestALostAttemptIsSettledByTheNextOne(t *testing.T) {
	b := newBank(labelled(map[string]string{"team": "support"}))
	key := "demo:r0001/1@earlier-run" // the run continued as new before the worker died
	b.ledgers["budget:team=support"] = reducer.Ledger{Day: bankDay, Reserved: map[string]event.Amount{key: {Tokens: 80}}}
	err := b.generate([]activities.LabelBudget{limited("team", "", 100)}, 50, 30, func(in *activities.GenerateInput, env *testsuite.TestActivityEnvironment) {
		in.FirstAttempt = 2
		env.SetHeartbeatDetails(activities.LostAttempt{Attempted: sent, Usage: event.Usage{InputTokens: 20}, RunID: "earlier-run"})
	})
	require.NoError(t, err)
	require.Equal(t, int64(50), b.used(t, "budget:team=support"))
}

func TestAnAttemptWaitsForTheReservationOfALostOne(t *testing.T) {
	const id, key = "budget:team=support", "demo:r0001/1@run"
	for name, c := range map[string]struct {
		settled int64 // by its worker, which is alive; 0: it is not, and the deadline passes
		used    int64 // by both attempts
		denied  bool
	}{
		"its deadline passes":           {used: 20 + 30},
		"its worker settles it":         {settled: 50, used: 50 + 30},
		"its worker used more than fit": {settled: 60, used: 60, denied: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBank(labelled(map[string]string{"team": "support"}))
			b.denied = make(chan struct{}, 100)
			b.ledgers[id] = reducer.Ledger{Day: bankDay, Reserved: map[string]event.Amount{key: {Tokens: 80}}}
			settled := make(chan error, 1)
			go func() {
				<-b.denied
				if c.settled > 0 {
					settled <- b.SignalWorkflow(context.Background(), id, "", wire.SignalSettle, wire.Settle{Key: key, Used: event.Amount{Tokens: c.settled}})
					return
				}
				b.mu.Lock()
				defer b.mu.Unlock()
				b.late = time.Hour
				settled <- nil
			}()
			err := b.generate([]activities.LabelBudget{limited("team", "", 100)}, 50, 30, func(in *activities.GenerateInput, env *testsuite.TestActivityEnvironment) {
				in.FirstAttempt = 2
				env.SetHeartbeatDetails(activities.LostAttempt{
					Attempted: sent, Usage: event.Usage{InputTokens: 20}, RunID: "run", Deadline: time.Now().Add(time.Hour),
				})
			})
			require.NoError(t, <-settled)
			if c.denied {
				require.ErrorContains(t, err, "budget exceeded: team=support")
			} else {
				require.NoError(t, err)
			}
			require.Equal(t, c.used, b.used(t, id))
		})
	}
}

// A request that waits for a budget includes messages that arrive in the meantime.
func TestAnAttemptThatWaitsForABudgetIncludesNewInput(t *testing.T) {
	const id, key = "budget:team=support", "demo:r0001/1@run"
	session := labelled(map[string]string{"team": "support"})
	later := withInput(session, "And now?")
	b := newBank(session)
	b.session = func(n int) (reducer.Session, error) {
		if n < 2 {
			return session, nil
		}
		return later, nil
	}
	b.denied, b.stops = make(chan struct{}, 100), make(stops, 1)
	b.ledgers[id] = reducer.Ledger{Day: bankDay, Reserved: map[string]event.Amount{key: {Tokens: 80}}}
	settled := make(chan error, 1)
	go func() {
		<-b.denied
		(<-b.stops)(activities.Stop{RequestID: "demo:r0001", Reason: event.ReasonNewUserInput, Through: later.Trigger})
		settled <- b.SignalWorkflow(context.Background(), id, "", wire.SignalSettle, wire.Settle{Key: key, Used: event.Amount{Tokens: 10}})
	}()
	require.NoError(t, b.generate([]activities.LabelBudget{limited("team", "", 100)}, 50, 30, func(in *activities.GenerateInput, env *testsuite.TestActivityEnvironment) {
		in.FirstAttempt = 2
		env.SetHeartbeatDetails(activities.LostAttempt{Attempted: sent, RunID: "run", Deadline: time.Now().Add(time.Hour)})
	}))
	require.NoError(t, <-settled)
	require.Equal(t, "And now?", b.model.request.Messages[len(b.model.request.Messages)-1].Content)
	require.Equal(t, int64(10+30), b.used(t, id))
}

// held returns ledgers whose first update waits until the gate opens.
func held(t *testing.T) (*bank, *activities.Ledgers) {
	b := newBank(reducer.Session{})
	b.gate, b.running, b.released = make(chan struct{}), make(chan struct{}, 100), make(chan struct{}, 1)
	l := activities.NewLedgers(b)
	go func() {
		isGranted, err := l.Reserve(t.Context(), "budget:x=y", "first", 1)
		assert.NoError(t, err)
		assert.True(t, isGranted)
	}()
	<-b.running
	return b, l
}

func TestReservationsThatWaitShareAnUpdate(t *testing.T) {
	b, l := held(t)
	const n = 50
	var all sync.WaitGroup
	var granted atomic.Int64
	for i := range n {
		all.Go(func() {
			isGranted, err := l.Reserve(t.Context(), "budget:x=y", fmt.Sprint(i), 10)
			assert.NoError(t, err)
			if isGranted {
				granted.Add(1)
			}
		})
	}
	require.Eventually(t, func() bool { return l.Waiting("budget:x=y") == n }, 10*time.Second, time.Millisecond)
	close(b.gate)
	all.Wait()
	require.Equal(t, int64(9), granted.Load())
	require.Equal(t, 2, b.updates)
}

func TestAReservationThatIsNotAwaitedIsReleased(t *testing.T) {
	b, l := held(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := l.Reserve(ctx, "budget:x=y", "second", 10)
		ended <- err
	}()
	require.Eventually(t, func() bool { return l.Waiting("budget:x=y") == 1 }, 10*time.Second, time.Millisecond)
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	close(b.gate)
	<-b.released
	require.Equal(t, 2, b.updates)
	require.Equal(t, int64(1), b.ledgers["budget:x=y"].Used().Tokens)
}
