package activities

import (
	"context"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

var WithHeartbeats = withHeartbeats

type Ledgers = ledgers

var NewLedgers = newLedgers

// Reserve reserves tokens under a key, of at most 100.
func (l *ledgers) Reserve(ctx context.Context, id, key string, tokens int64) (isGranted bool, err error) {
	_, answer, err := l.reserve(ctx, id, "queue", reducer.Reservation{
		Key: key, Wanted: event.Amount{Tokens: tokens}, Limit: event.Budget{Tokens: new(int64(100))},
	})
	return answer.Granted, err
}

// LedgersOf returns the ids of the budgets of a request.
func LedgersOf(contextName string, budgets []LabelBudget, settings event.RequestSettings) (ids []string) {
	g := &generation{in: AttemptInput{ContextName: contextName}}
	for _, b := range budgetsOf(budgets, labelsOf(contextName, settings)) {
		ids = append(ids, g.ledgerOf(b))
	}
	return ids
}

// SetReserveTimeout sets how long a reservation waits for its workflow.
func SetReserveTimeout(a *Activities, d time.Duration) { a.ledgers.timeout = d }

// Waiting returns the number of reservations without an update.
func (l *ledgers) Waiting(id string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting[id])
}

type Batch = batch

func (b *batch) Add(e eventlog.Recorded) bool { return b.add(e) }

var IsDuringTurn = isDuringTurn

var HeartbeatInterval = heartbeatInterval

var (
	Due      = AttemptInput.due
	Describe = AttemptInput.describe
)

// Traceable returns the text of an error in spans.
func Traceable(options Options, err error) string { return New(options).traceable(err).Error() }

// ProblemOf returns the text of a failure in spans.
func ProblemOf(options Options, result reducer.AttemptEnded) string {
	return New(options).problemOf(result)
}

var FailedTool = failedTool
