package activities

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"

	"github.com/seed-9ed7edd4/chronicle/internal/pause"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

const (
	// If the worker of the workflow dies, another continues it within ten seconds. After this timeout,
	// the attempt fails and is retried.
	reserveTimeout = 20 * time.Second
	reserveRetry   = 100 * time.Millisecond
	settleTimeout  = 5 * time.Second // if it expires, the reservation counts in full
	releaseTimeout = 10 * time.Minute
)

// ledgers reserves usage in workflows of type Budget. A workflow accepts few updates at a time, so
// reservations of this process that wait for the same workflow share one update.
type ledgers struct {
	temporal client.Client
	timeout  time.Duration // of an update

	mu      sync.Mutex
	waiting map[string][]*reservation // by workflow id; an entry exists while an update runs
}

type reservation struct {
	reducer.Reservation
	taskQueue string
	done      chan struct{} // closed when the fields below are set
	day       string
	answer    wire.ReservationState
	err       error
}

func newLedgers(temporal client.Client) *ledgers {
	return &ledgers{temporal: temporal, timeout: reserveTimeout, waiting: map[string][]*reservation{}}
}

// reserve returns the answer of the workflow with an id, and starts the workflow if it is not running.
// If ctx ends first, or there is no answer, the reservation is released.
func (l *ledgers) reserve(ctx context.Context, id, taskQueue string, wanted reducer.Reservation) (day string, answer wire.ReservationState, err error) {
	r := &reservation{Reservation: wanted, taskQueue: taskQueue, done: make(chan struct{})}
	l.mu.Lock()
	others, isRunning := l.waiting[id]
	l.waiting[id] = append(others, r)
	l.mu.Unlock()
	if !isRunning {
		go l.run(id)
	}
	select {
	case <-r.done:
		if r.err != nil {
			l.startRelease(ctx, id, r)
		}
		return r.day, r.answer, r.err
	case <-ctx.Done():
		go func() {
			<-r.done
			l.release(ctx, id, r)
		}()
		return "", answer, context.Cause(ctx)
	}
}

// startRelease waits up to settleTimeout, so that the release precedes the reservation of the next attempt:
// otherwise, the reservation that nobody uses could exceed the limit together with the next one.
func (l *ledgers) startRelease(ctx context.Context, id string, r *reservation) {
	wait, cancel := context.WithTimeout(ctx, settleTimeout)
	go func() {
		defer cancel()
		l.release(ctx, id, r)
	}()
	<-wait.Done()
}

// release cancels a reservation that nobody uses: its update has failed, or its caller no longer waits. The server
// may still accept a failed update later, so release starts the workflow if it is not running: the workflow then knows
// the key and denies the update.
func (l *ledgers) release(ctx context.Context, id string, r *reservation) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	for {
		_, err := l.temporal.SignalWithStartWorkflow(ctx, id, wire.SignalSettle, wire.Settle{Key: r.Key, Release: true},
			client.StartWorkflowOptions{ID: id, TaskQueue: r.taskQueue}, wire.WorkflowBudget, reducer.Ledger{})
		if err == nil {
			return
		}
		if !pause.For(ctx, settleTimeout) {
			warnUnsettled(ctx, id, r.Key, err)
			return
		}
	}
}

func (l *ledgers) run(id string) {
	for {
		l.mu.Lock()
		all := l.waiting[id]
		batch := all[:min(len(all), wire.MaxReservations)]
		l.waiting[id] = all[len(batch):]
		if len(batch) == 0 {
			delete(l.waiting, id)
		}
		l.mu.Unlock()
		if len(batch) == 0 {
			return
		}
		reserved, err := l.update(id, batch)
		for i, r := range batch {
			r.day, r.err = reserved.Day, err
			if err == nil {
				r.answer = reserved.Answers[i]
			}
			close(r.done)
		}
	}
}

// update repeats a failed update, for example if the workflow completed at midnight, until the timeout.
// The server answers a repeated update id with the first result.
func (l *ledgers) update(id string, batch []*reservation) (reserved wire.Reserved, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), l.timeout)
	defer cancel()
	var in wire.Reserve
	for _, r := range batch {
		in.Reservations = append(in.Reservations, r.Reservation)
	}
	updateID := rand.Text()
	for {
		var handle client.WorkflowUpdateHandle
		handle, err = l.temporal.UpdateWithStartWorkflow(ctx, client.UpdateWithStartWorkflowOptions{
			StartWorkflowOperation: l.temporal.NewWithStartWorkflowOperation(client.StartWorkflowOptions{
				ID: id, TaskQueue: batch[0].taskQueue, WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
			}, wire.WorkflowBudget, reducer.Ledger{}),
			UpdateOptions: client.UpdateWorkflowOptions{
				UpdateID: updateID, WorkflowID: id, UpdateName: wire.UpdateReserve, Args: []any{in},
				WaitForStage: client.WorkflowUpdateStageCompleted,
			},
		})
		if err == nil {
			err = handle.Get(ctx, &reserved)
		}
		switch {
		case err == nil && len(reserved.Answers) != len(batch):
			return reserved, fmt.Errorf("%d answers to %d reservations", len(reserved.Answers), len(batch))
		case err == nil:
			return reserved, nil
		}
		if pause.For(ctx, reserveRetry); ctx.Err() != nil {
			return reserved, err
		}
	}
}

// settle reports the usage of an attempt. It ignores the error of a completed workflow: the day of
// the reservation is over.
func (l *ledgers) settle(ctx context.Context, id string, in wire.Settle) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	err := l.temporal.SignalWorkflow(ctx, id, "", wire.SignalSettle, in)
	if err != nil && !errors.As(err, new(*serviceerror.NotFound)) {
		warnUnsettled(ctx, id, in.Key, err)
	}
}

func warnUnsettled(ctx context.Context, id, key string, err error) {
	activity.GetLogger(ctx).Warn("cannot settle the usage of an attempt: its reservation counts for the rest of the day", "budget", id, "key", key, "error", err)
}
