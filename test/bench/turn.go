package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seed-9ed7edd4/chronicle/test/rig"
)

// The answer used in most measurements.
const (
	tokens = 20
	every  = 5 * time.Millisecond
)

func message(key string) rig.Message { return rig.Message{Key: key, Tokens: tokens, Every: every} }

// After turnTimeout, a turn counts as lost.
const turnTimeout = 2 * time.Minute

// talker is the user of a context or of a bare loop.
type talker struct {
	*runner
	name string
	on   interface {
		Begin(ctx context.Context, name string) error
		Send(ctx context.Context, name string, m rig.Message) error
	}
	begun bool
}

func (r *runner) context(name string) *talker  { return &talker{runner: r, name: name, on: r.Rig} }
func (r *runner) bareLoop(name string) *talker { return &talker{runner: r, name: name, on: r.Bare} }

func (t *talker) begin() error {
	t.begun = true
	return t.on.Begin(t.ctx, t.name)
}

// say sends a message and returns the time before sending.
func (t *talker) say(m rig.Message) (sent time.Time, err error) {
	if !t.begun {
		if err := t.begin(); err != nil {
			return sent, fmt.Errorf("begin %s: %w", t.name, err)
		}
	}
	sent = time.Now()
	if err := t.on.Send(t.ctx, t.name, m); err != nil {
		return sent, fmt.Errorf("send to %s: %w", t.name, err)
	}
	return sent, nil
}

type turn struct {
	// toRequest is from sending the message until the model received the request, toEnd until an observer saw
	// the end of the answer.
	toRequest, toEnd time.Duration
	delays           []time.Duration
}

func (t *talker) turn(m rig.Message) (turn, error) {
	sent, err := t.say(m)
	if err != nil {
		return turn{}, err
	}
	ended, err := t.await(rig.Ended, m.Key)
	if err != nil {
		return turn{}, err
	}
	if ended.Value != rig.Completed {
		return turn{}, fmt.Errorf("message %s of %s: its turn ended as %q", m.Key, t.name, ended.Value)
	}
	requested, err := t.await(rig.Requested, m.Key)
	return turn{requested.At.Sub(sent), ended.At.Sub(sent), ended.Delays}, err
}

func (r *runner) await(kind rig.Kind, key string) (rig.Observation, error) {
	ctx, cancel := context.WithTimeoutCause(r.ctx, turnTimeout, fmt.Errorf("not within %v: it is lost", turnTimeout))
	defer cancel()
	return r.Observations.Await(ctx, kind, key)
}

// talkAtOnce has n talkers take turns concurrently. Each message has its own key.
func talkAtOnce(n, turns int, say func(key string) rig.Message, talker func(i int) *talker) ([]turn, time.Duration, error) {
	began := time.Now()
	var talking errgroup.Group
	out := make([][]turn, n)
	for i := range n {
		talking.Go(func() error {
			t := talker(i)
			for j := range turns {
				done, err := t.turn(say(fmt.Sprintf("%s-%d", t.name, j)))
				if err != nil {
					return err
				}
				out[i] = append(out[i], done)
			}
			return nil
		})
	}
	err := talking.Wait()
	return slices.Concat(out...), time.Since(began), err
}
