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
	"go.temporal.io/sdk/testsuite"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/reducer"
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
	model    *caller       // of the newest attempt
	wait     chan struct{} // holds answers until it is closed; nil: none
}

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
	ledger := b.ledgers[o.UpdateOptions.WorkflowID].On(bankDay)
	for _, r := range o.UpdateOptions.Args[0].(wire.Reserve).Reservations {
		answer := wire.ReservationState{Used: ledger.Used()}
		ledger, answer.Granted = ledger.Reserve(r)
		out.Answers = append(out.Answers, answer)
	}
	b.ledgers[o.UpdateOptions.WorkflowID] = ledger
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return reservedHandle{result: out}, nil
}

func (b *bank) ledger(id string) reducer.Ledger {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ledgers[id]
}

type reservedHandle struct {
	client.WorkflowUpdateHandle
	result wire.Reserved
}

func (h reservedHandle) Get(_ context.Context, out any) error {
	*out.(*wire.Reserved) = h.result
	return nil
}

func (b *bank) SignalWorkflow(_ context.Context, id, run, name string, input any) error {
	if name != wire.SignalSettle {
		panic(name + " " + run)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	in := input.(wire.Settle)
	b.ledgers[id] = b.ledgers[id].Settle(in.Key, in.Used)
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
func (b *bank) generate(budgets []activities.LabelBudget, needs, uses int, change ...func(*activities.AttemptInput)) (reducer.AttemptEnded, error) {
	session, _ := b.session(0)
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestActivityEnvironment()
	env.SetTestTimeout(time.Minute)
	model := &caller{wait: b.wait, needs: event.Usage{InputTokens: needs}, answer: activities.Answer{Text: "Hi", FinishReason: "stop", Usage: event.Usage{InputTokens: uses}}}
	b.mu.Lock()
	b.model = model
	b.mu.Unlock()
	registered := activities.New(activities.Options{Temporal: b, Models: model, Budgets: budgets})
	if b.timeout > 0 {
		activities.SetReserveTimeout(registered, b.timeout)
	}
	env.RegisterActivity(registered)
	in := inputOf(session)
	in.TimeoutMs = 30_000
	for _, c := range change {
		c(&in)
	}
	var result reducer.AttemptEnded
	value, err := env.ExecuteActivity(acts.Generate, in)
	if err == nil {
		err = value.Get(&result)
	}
	return result, err
}

// answers requires an answer.
func (b *bank) answers(t *testing.T, budgets []activities.LabelBudget, needs, uses int, change ...func(*activities.AttemptInput)) {
	t.Helper()
	result, err := b.generate(budgets, needs, uses, change...)
	require.NoError(t, err)
	require.Equal(t, reducer.Completed, result.Outcome, result.Error)
}

// denies requires that an attempt fails for good before it is sent.
func (b *bank) denies(t *testing.T, budgets []activities.LabelBudget, needs, uses int, change ...func(*activities.AttemptInput)) reducer.AttemptEnded {
	t.Helper()
	result, err := b.generate(budgets, needs, uses, change...)
	require.NoError(t, err)
	require.Equal(t, reducer.Failed, result.Outcome)
	require.False(t, result.Retryable)
	require.Nil(t, b.model.ctx, "it was sent")
	return result
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
	b.answers(t, budgets, 100, 30)
	require.Equal(t, int64(30), b.used(t, "budget:team=support"))
	require.Equal(t, int64(30), b.used(t, "budget:user=ann"))
	require.Len(t, b.ledgers, 2)

	details := b.denies(t, budgets, 71, 30)
	require.Equal(t, event.FailureBudgetExceeded, details.Kind)
	require.Equal(t, &event.BudgetExceeded{
		RequestID: "demo:r0001", Budget: "team=support", Day: bankDay, Limit: event.Budget{Tokens: new(int64(100))},
		Used: event.Amount{Tokens: 30}, Wanted: event.Amount{Tokens: 71},
	}, details.Exceeded)
	require.Contains(t, details.Error, "budget exceeded: team=support on 2026-01-02: limit 100 tokens, used 30, wanted 71 (lower maxTokens, wait until")
	require.Equal(t, int64(30), b.used(t, "budget:team=support"))
}

// Each attempt has its own process, and uses what it reserved, so the order does not matter.
func TestConcurrentAttemptsUseABudgetUpAndNoMore(t *testing.T) {
	b := newBank(labelled(map[string]string{"team": "support"}))
	var all sync.WaitGroup
	var answered atomic.Int64
	for i := range 50 {
		all.Go(func() {
			result, err := b.generate([]activities.LabelBudget{limited("team", "", 1050)}, 100, 100, func(in *activities.AttemptInput) {
				in.RequestID = event.FormatRequestID("demo", i+1)
			})
			assert.NoError(t, err)
			if result.Outcome == reducer.Completed {
				answered.Add(1)
				return
			}
			assert.Contains(t, result.Error, "budget exceeded: team=support on 2026-01-02: limit 1050 tokens")
		})
	}
	all.Wait()
	require.Equal(t, int64(10), answered.Load())
	require.Equal(t, int64(1000), b.used(t, "budget:team=support"))
}

func TestAnAttemptThatOneBudgetDeniesUsesNoOther(t *testing.T) {
	b := newBank(labelled(map[string]string{"team": "support", "user": "ann"}))
	details := b.denies(t, []activities.LabelBudget{limited("team", "", 100), limited("user", "", 10)}, 50, 30)
	require.Equal(t, "user=ann", details.Exceeded.Budget)
	require.Zero(t, b.used(t, "budget:team=support"))
}

func TestRequestsWithoutALimitedLabelReserveNothing(t *testing.T) {
	b := newBank(labelled(map[string]string{"team": "sales", "other": "x"}))
	b.answers(t, []activities.LabelBudget{limited("team", "support", 0)}, 50, 30)
	require.Zero(t, b.updates)
}

func TestALimitOfTheCostOfALabelRequiresAPrice(t *testing.T) {
	b := newBank(labelled(map[string]string{"team": "support", "user": "ann"}))
	details := b.denies(t, []activities.LabelBudget{limited("team", "", 100), {Label: "user", Limit: event.Budget{CostMicros: new(int64(5))}}}, 50, 30)
	require.Equal(t, event.FailureConfiguration, details.Kind)
	require.Contains(t, details.Error, "budget user=ann: the price of openai scripted is unknown")
	require.Zero(t, b.used(t, "budget:team=support"))
}

func TestAReservationIsRepeatedWhenTheWorkflowCompletes(t *testing.T) {
	b := newBank(labelled(map[string]string{"team": "support"}))
	b.failures = 2
	b.answers(t, []activities.LabelBudget{limited("team", "", 100)}, 50, 30)
	require.Equal(t, 3, b.updates)
	require.Equal(t, int64(30), b.used(t, "budget:team=support"))
}

func TestAnAttemptIsRetriedIfTheBudgetCannotBeReached(t *testing.T) {
	b := newBank(labelled(map[string]string{"team": "support"}))
	b.failures = 1 << 30 // until the timeout
	b.timeout, b.released = 10*time.Millisecond, make(chan struct{}, 1)
	_, err := b.generate([]activities.LabelBudget{limited("team", "", 100)}, 50, 30)
	require.Contains(t, unsent(t, err).Message(), "reserve the budget team=support: the workflow has completed")
	<-b.released
}

func TestAReservationThatIsAcceptedAfterItsTimeoutIsReleased(t *testing.T) {
	b := newBank(labelled(map[string]string{"team": "support"}))
	b.isSlow, b.timeout, b.released = true, 10*time.Millisecond, make(chan struct{}, 1)
	_, err := b.generate([]activities.LabelBudget{limited("team", "", 100)}, 50, 30)
	unsent(t, err)
	require.Len(t, b.released, 1, "before the next attempt")
	require.Equal(t, 1, b.updates)
	require.Zero(t, b.used(t, "budget:team=support"))
}

func TestALostAttemptIsSettledByTheNextOne(t *testing.T) {
	b := newBank(labelled(map[string]string{"team": "support"}))
	key := "demo:r0001/1.1@earlier-run"
	b.ledgers["budget:team=support"] = reducer.Ledger{Day: bankDay, Reserved: map[string]event.Amount{key: {Tokens: 80}}}
	b.answers(t, []activities.LabelBudget{limited("team", "", 100)}, 50, 30, func(in *activities.AttemptInput) {
		in.Previous = &activities.PreviousAttempt{Outcome: reducer.Lost, Heartbeat: &activities.Heartbeat{
			Sent: true, Usage: event.Usage{InputTokens: 20}, Reservation: key,
		}}
	})
	require.Equal(t, int64(50), b.used(t, "budget:team=support"))
}

// A worker that dies leaves its reservation to the next attempt.
func TestHeartbeatsNameTheReservation(t *testing.T) {
	b := newBank(labelled(map[string]string{"team": "support"}))
	gate := make(chan struct{})
	b.beat = func(activities.Heartbeat) { close(gate); b.beat = nil }
	b.wait = gate
	b.answers(t, []activities.LabelBudget{limited("team", "", 100)}, 50, 30)
	beat := b.beats[0]
	require.True(t, beat.Sent)
	require.Equal(t, "demo:r0001/1.1@"+runID, beat.Reservation)
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
	require.Eventually(t, func() bool { return l.Waiting("budget:x=y") == n }, time.Minute, time.Millisecond)
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
	require.Eventually(t, func() bool { return l.Waiting("budget:x=y") == 1 }, time.Minute, time.Millisecond)
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	close(b.gate)
	<-b.released
	require.Equal(t, 2, b.updates)
	require.Equal(t, int64(1), b.ledger("budget:x=y").Used().Tokens)
}
