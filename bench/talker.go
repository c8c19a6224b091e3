package main

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-9ed7edd4/chronicle/bench/rig"
)

// The answer used in most measurements.
const (
	tokens = 20
	every  = 5 * time.Millisecond
)

func message(key string) rig.Message { return rig.Message{Key: key, Tokens: tokens, Every: every} }

// After turnTimeout, a turn counts as lost.
const turnTimeout = 2 * time.Minute

type talker struct {
	ctx          context.Context
	observations *rig.Observations
	name         string
	on           interface {
		Begin(ctx context.Context, name string) error
		Send(ctx context.Context, name string, m rig.Message) error
		Watch(name string) error
	}
	begun bool
}

func (r *runner) context(name string) *talker {
	return &talker{ctx: r.ctx, observations: r.rig.Observations, name: name, on: r.rig.Contexts}
}

func (r *runner) bareLoop(name string) *talker {
	return &talker{ctx: r.ctx, observations: r.rig.Observations, name: name, on: r.rig.Bare}
}

// say sends a message and returns the time before sending. An observer follows the context from
// before the first message, as a screen does.
func (t *talker) say(m rig.Message) (sent time.Time, err error) {
	if !t.begun {
		t.begun = true
		if err = t.on.Begin(t.ctx, t.name); err == nil {
			err = t.on.Watch(t.name)
		}
		if err == nil {
			_, err = t.await(rig.Watching, t.name)
		}
		if err != nil {
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
	// toRequest is from sending the message until the model received the request, toEnd until
	// an observer saw the end of the answer.
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
	if ended.Value != "completed" {
		return turn{}, fmt.Errorf("message %s of %s: its turn ended as %q", m.Key, t.name, ended.Value)
	}
	requested, err := t.await(rig.Requested, m.Key)
	return turn{requested.At.Sub(sent), ended.At.Sub(sent), ended.Delays}, err
}

func (t *talker) await(kind rig.Kind, key string) (rig.Observation, error) {
	ctx, cancel := context.WithTimeoutCause(t.ctx, turnTimeout, fmt.Errorf("not within %v: it is lost", turnTimeout))
	defer cancel()
	return t.observations.Await(ctx, kind, key)
}
