package workflows_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/workflows"
)

// budgetWorld runs the budget of a label, with a limit of 100 tokens, from an hour before midnight.
type budgetWorld struct {
	*testsuite.TestWorkflowEnvironment
	t       *testing.T
	updates int
}

func newBudgetWorld(t *testing.T) *budgetWorld {
	w := &budgetWorld{TestWorkflowEnvironment: newEnvironment(wire.BudgetID("", "team", "support")), t: t}
	w.SetStartTime(time.Date(2026, 1, 2, 23, 0, 0, 0, time.UTC))
	w.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{workflows.Interceptor()}})
	w.RegisterWorkflowWithOptions(workflows.Budget, workflow.RegisterOptions{Name: wire.WorkflowBudget})
	return w
}

func (w *budgetWorld) run(ledger reducer.Ledger) error {
	w.ExecuteWorkflow(wire.WorkflowBudget, ledger)
	require.True(w.t, w.IsWorkflowCompleted())
	return w.GetWorkflowError()
}

func (w *budgetWorld) at(when time.Duration, do func()) { w.RegisterDelayedCallback(do, when) }

// reserves requires an answer to each reservation of tokens, in one update.
func (w *budgetWorld) reserves(day string, tokens []int64, want ...wire.ReservationState) {
	w.updates++
	var in wire.Reserve
	for i, n := range tokens {
		in.Reservations = append(in.Reservations, reducer.Reservation{
			Key: fmt.Sprint(w.updates, "/", i), Wanted: event.Amount{Tokens: n}, Limit: event.Budget{Tokens: new(int64(100))},
		})
	}
	w.UpdateWorkflow(wire.UpdateReserve, fmt.Sprint("update ", w.updates), &testsuite.TestUpdateCallback{
		OnReject: func(err error) { require.NoError(w.t, err) },
		OnAccept: func() {},
		OnComplete: func(result any, err error) {
			require.NoError(w.t, err)
			require.Equal(w.t, wire.Reserved{Day: day, Answers: want}, result)
		},
	}, in)
}

func (w *budgetWorld) settles(key string, tokens int64) {
	w.SignalWorkflow(wire.SignalSettle, wire.Settle{Key: key, Used: event.Amount{Tokens: tokens}})
}

func (w *budgetWorld) state() (state wire.BudgetState) {
	value, err := w.QueryWorkflow(wire.QueryBudget)
	require.NoError(w.t, err)
	require.NoError(w.t, value.Get(&state))
	return state
}

func granted(used int64) wire.ReservationState {
	return wire.ReservationState{Granted: true, Used: event.Amount{Tokens: used}}
}

func denied(used int64) wire.ReservationState {
	return wire.ReservationState{Used: event.Amount{Tokens: used}}
}

func TestReservationsOfALabelStayWithinItsLimit(t *testing.T) {
	w := newBudgetWorld(t)
	w.at(time.Second, func() {
		w.reserves("2026-01-02", []int64{60, 41, 40, 1}, granted(0), denied(60), granted(60), denied(100))
	})
	w.at(2*time.Second, func() {
		require.Equal(t, wire.BudgetState{Day: "2026-01-02", Limit: event.Budget{Tokens: new(int64(100))}, Reserved: event.Amount{Tokens: 100}}, w.state())
		w.settles("1/0", 10)
		w.settles("1/0", 10)
		w.settles("unknown", 10)
		w.settles("1/2", -5)
	})
	w.at(3*time.Second, func() {
		require.Equal(t, event.Amount{Tokens: 10}, w.state().Spent)
		w.reserves("2026-01-02", []int64{91, 90}, denied(10), granted(10))
	})
	require.NoError(t, w.run(reducer.Ledger{}))
	require.Equal(t, time.Date(2026, 1, 3, 0, 0, 0, 0, time.UTC), w.Now().UTC(), "it completes at midnight, with an open reservation")
}

func TestADayBeginsWithoutUsage(t *testing.T) {
	w := newBudgetWorld(t)
	w.SetStartTime(time.Date(2026, 1, 3, 0, 0, 1, 0, time.UTC)) // it continued as new at midnight
	w.at(time.Second, func() {
		w.settles("demo:r0001/1@run", 50)
		w.reserves("2026-01-03", []int64{100}, granted(0))
	})
	w.at(23*time.Hour, func() { w.reserves("2026-01-03", []int64{1}, denied(100)) })
	require.NoError(t, w.run(reducer.Ledger{
		Day: "2026-01-02", Spent: event.Amount{Tokens: 40}, Reserved: map[string]event.Amount{"demo:r0001/1@run": {Tokens: 60}},
	}))
	require.Equal(t, time.Date(2026, 1, 4, 0, 0, 0, 0, time.UTC), w.Now().UTC())
}

func TestABudgetContinuesAsNewWithItsLedger(t *testing.T) {
	w := newBudgetWorld(t)
	w.at(time.Second, func() { w.reserves("2026-01-02", []int64{60, 30}, granted(0), granted(60)) })
	w.at(2*time.Second, func() {
		for range 998 {
			w.settles("unknown", 1)
		}
		w.settles("1/0", 5)
	})
	err := w.run(reducer.Ledger{})
	var next *workflow.ContinueAsNewError
	require.ErrorAs(t, err, &next)
	require.Equal(t, wire.WorkflowBudget, next.WorkflowType.Name)
	var ledger reducer.Ledger
	require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(next.Input, &ledger))
	require.Equal(t, reducer.Ledger{
		Day: "2026-01-02", Spent: event.Amount{Tokens: 5}, Reserved: map[string]event.Amount{"1/1": {Tokens: 30}},
		Limit: event.Budget{Tokens: new(int64(100))},
	}, ledger)

	w = newBudgetWorld(t)
	w.at(time.Second, func() {
		require.Equal(t, wire.BudgetState{
			Day: "2026-01-02", Limit: event.Budget{Tokens: new(int64(100))}, Spent: event.Amount{Tokens: 5}, Reserved: event.Amount{Tokens: 30},
		}, w.state())
	})
	require.NoError(t, w.run(ledger))
}

func TestAReleasedReservationDoesNotCount(t *testing.T) {
	w := newBudgetWorld(t)
	release := func(key string) { w.SignalWorkflow(wire.SignalSettle, wire.Settle{Key: key, Release: true}) }
	w.at(time.Second, func() { w.reserves("2026-01-02", []int64{60}, granted(0)) })
	w.at(2*time.Second, func() {
		release("1/0")
		release("2/0") // before its reservation
	})
	w.at(3*time.Second, func() { w.reserves("2026-01-02", []int64{10, 100}, denied(0), granted(0)) })
	require.NoError(t, w.run(reducer.Ledger{}))
}

// After an outage, one workflow task receives reservations whose callers gave up, their releases and a
// new reservation.
func TestReleasesCountBeforeReservationsOfTheSameTask(t *testing.T) {
	w := newBudgetWorld(t)
	w.at(time.Second, func() { w.reserves("2026-01-02", []int64{60}, granted(0)) })
	w.at(2*time.Second, func() {
		release := func(key string) { w.SignalWorkflow(wire.SignalSettle, wire.Settle{Key: key, Release: true}) }
		release("1/0")
		release("2/0")
		release("3/0")
		w.reserves("2026-01-02", []int64{60}, denied(0))
		w.reserves("2026-01-02", []int64{60}, denied(0))
		w.reserves("2026-01-02", []int64{60}, granted(0))
	})
	require.NoError(t, w.run(reducer.Ledger{}))
}

func TestABudgetForgetsOldReleases(t *testing.T) {
	var released []string
	for i := range reducer.MaxReleased {
		released = append(released, fmt.Sprint("lost/", i))
	}
	w := newBudgetWorld(t)
	w.at(time.Second, func() {
		for i := range 1000 {
			w.SignalWorkflow(wire.SignalSettle, wire.Settle{Key: fmt.Sprint("later/", i/500), Release: true})
		}
	})
	err := w.run(reducer.Ledger{Day: "2026-01-02", Released: released})
	var next *workflow.ContinueAsNewError
	require.ErrorAs(t, err, &next)
	var ledger reducer.Ledger
	require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(next.Input, &ledger))
	require.Equal(t, append(released[2:], "later/0", "later/1"), ledger.Released)
}

func TestInvalidReservationsAreRejected(t *testing.T) {
	valid := reducer.Reservation{Key: "key", Wanted: event.Amount{Tokens: 1}}
	negative, unnamed, unlimited := valid, valid, valid
	negative.Wanted.CostMicros = -1
	unnamed.Key = ""
	unlimited.Limit.Tokens = new(int64(-1))
	for want, in := range map[string]wire.Reserve{
		"reservations: want 1 to 100, got 0":   {},
		"reservations: want 1 to 100, got 101": {Reservations: make([]reducer.Reservation, 101)},
		"want a key":                           {Reservations: []reducer.Reservation{unnamed}},
		"amounts of 0 or more":                 {Reservations: []reducer.Reservation{valid, negative}},
		"limit: tokens: want 0 to":             {Reservations: []reducer.Reservation{unlimited}},
	} {
		w := newBudgetWorld(t)
		isRejected := false
		w.at(time.Second, func() {
			w.UpdateWorkflow(wire.UpdateReserve, "update", &testsuite.TestUpdateCallback{
				OnReject: func(err error) {
					isRejected = true
					require.ErrorContains(t, err, want)
				},
				OnAccept:   func() {},
				OnComplete: func(any, error) {},
			}, in)
		})
		require.NoError(t, w.run(reducer.Ledger{}))
		require.True(t, isRejected, want)
	}
}
