package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/test/rig"
)

// step is one kind of hostile act. An error is what the door answered.
type step struct {
	name   string
	weight int
	run    func(context.Context, *user) error
}

var hostileSteps = []step{
	{"message", 8, sendMessage},
	{"post", 8, postInput},
	{"post-malformed", 4, postMalformed},
	{"request", 4, sendRequest},
	{"repeat", 3, repeatKey},
	{"slow-upload", 1, uploadSlowly},
	{"stalled-stream", 1, stallStream},
	{"read", 3, read},
	{"signal", 8, signalInput},
	{"signal-malformed", 6, signalMalformed},
	{"flood", 2, flood},
	{"update", 3, update},
	{"query", 2, query},
	{"reference", 4, signalReference},
	{"copied-reference", 1, copyReference},
	{"start", 2, start},
	{"budget", 2, useBudget},
	{"places", 3, choosePlaces},
	{"delta", 5, forgeDelta},
	{"stop", 3, forgeStop},
	{"nats", 2, publishGarbage},
	{"settings", 6, set},
	{"server", 4, callServer},
	{"interrupt", 3, interrupt},
	{"close", 1, closeSession},
	{"fork", 1, fork},
	{"cancel", 1, cancel},
	{"reset", 1, reset},
	{"terminate", 1, terminate},
}

func chooseStep(r *rand.Rand) step {
	sum := 0
	for _, s := range hostileSteps {
		sum += s.weight
	}
	n := r.IntN(sum)
	for _, s := range hostileSteps {
		if n -= s.weight; n < 0 {
			return s
		}
	}
	panic("unreachable")
}

// stepRandom is the source of a step of a context, so that the steps do not depend on their timing.
func (o options) stepRandom(context, step int) *rand.Rand {
	return rand.New(rand.NewPCG(o.seed, uint64(context)<<32|uint64(step)))
}

const stepTimeout = 15 * time.Second

// attack takes the steps of a context.
func (u *user) attack(ctx context.Context) {
	for i := range u.options.steps {
		u.step, u.rand = i, u.options.stepRandom(u.number, i)
		s := chooseStep(u.rand)
		began := time.Now()
		step, cancel := context.WithTimeout(ctx, stepTimeout)
		err := s.run(step, u)
		cancel()
		if ctx.Err() != nil {
			return
		}
		text := "ok"
		if err != nil {
			text = strings.Join(strings.Fields(event.Redact(err.Error(), 200)), " ")
		}
		line := fmt.Sprintf("%3d %-16s %4d ms  %s", i, s.name, time.Since(began).Milliseconds(), text)
		u.trail = append(u.trail, line)
		if u.options.verbose {
			fmt.Println(u.name(), line)
		}
	}
}

// answerAgain gives a context usable settings and waits until it answers a message.
func answerAgain(ctx context.Context, c *client.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	n := 0
	err := retry(ctx, answerTimeout/3, func(ctx context.Context) error {
		_ = c.Interrupt(ctx) // an error means that no run exists
		if _, err := c.Send(ctx, usableSettings()...); err != nil {
			return fmt.Errorf("send the settings: %w", err)
		}
		n++
		m := rig.Message{Key: fmt.Sprintf("last-%d", n), Tokens: 3}
		got, err := c.Answer(ctx, event.New(event.UserMessage{Content: m.String()}))
		if key, tokens := rig.Answered(got); err == nil && (key != m.Key || tokens != m.Tokens) {
			err = fmt.Errorf("the answer is %.100q", got)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("%s does not answer within %v: %w", c.Name(), answerTimeout, err)
	}
	return nil
}

func usableSettings() []event.Event {
	return []event.Event{
		event.New(event.SetDeliveryPolicy{Policy: event.PolicyInterrupt, QuietPeriodMs: new(int64(10)), MaxWaitMs: new(int64(500))}),
		event.New(event.SetProviderConfig{UseDefault: true, AsFallback: true}),
		event.New(event.SetProviderConfig{UseDefault: true}),
		event.New(event.SetRequestSettings{}), event.New(event.SetTools{}), event.New(event.BudgetSet{}),
		event.New(event.SetCompaction{}), event.New(event.SetTimeout{TimeoutMs: 30_000}),
		event.New(event.SetRetryConfig{MaxRetries: 3, InitialDelayMs: 100}),
	}
}
