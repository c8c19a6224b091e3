package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/pause"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

const checkTimeout = 2 * time.Minute

func (u *user) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	name := u.context.Name()
	state, log, err := u.readIdle(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	u.soak.counts.events.Add(int64(len(log)))
	deliveryProblem := u.checkDelivered(ctx, log)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.journal.executions = u.soak.executions.Of(name)
	u.soak.counts.addOutcomes(u.journal, log)
	u.soak.counts.addCalls(u.journal, log)
	if u.kind.budgets {
		u.soak.spent.Add(int64(state.Usage.InputTokens + state.Usage.OutputTokens))
	}
	err = errors.Join(deliveryProblem, u.journal.check(log, u.followed, state), u.checkVerified(ctx), u.checkRuns(ctx))
	if err != nil {
		u.dump()
		return fmt.Errorf("%s: %w\n%s", name, err, tail(log))
	}
	return nil
}

// readIdle reads the state and the log. A rejected message that was also stored as a signal can
// be accepted after its user was done; readIdle waits for its answer until ctx ends.
func (u *user) readIdle(ctx context.Context) (state wire.State, log []event.Event, err error) {
	for {
		// For some seconds, Temporal sends queries to a worker that was just killed.
		err = u.retry(ctx, "query the state", func(ctx context.Context) (err error) {
			state, err = u.context.State(ctx)
			return err
		})
		if err != nil {
			return state, nil, err
		}
		log = nil
		for e, err := range u.context.Events(ctx, "") {
			if err != nil {
				return state, nil, fmt.Errorf("read the log: %w", err)
			}
			log = append(log, e)
		}
		u.mu.Lock()
		isIdle := !reducer.RuleOf(u.journal.policy).Rejects || u.journal.checkIdle(log) == nil && state.Request == nil
		u.mu.Unlock()
		if isIdle || !pause.For(ctx, 200*time.Millisecond) {
			return state, log, nil
		}
	}
}

// checkVerified checks the log as starter verify does. A run archives the events of earlier
// runs in the background, and the attempt of a killed worker is repeated after
// activities.HeartbeatTimeout, so problems must disappear before ctx ends.
func (u *user) checkVerified(ctx context.Context) error {
	var problems []error
	for {
		verified, err := u.context.Verify(ctx)
		if err != nil {
			return errors.Join(append(problems, err)...)
		}
		problems = nil
		for _, p := range verified.Problems {
			problems = append(problems, fmt.Errorf("verify: %s %s", p.Place, p.Text))
		}
		if len(problems) == 0 || !pause.For(ctx, time.Second) {
			return errors.Join(problems...)
		}
	}
}
