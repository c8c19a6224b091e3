package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/seed-9ed7edd4/chronicle/bench/rig"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/session"
)

// client is a user of one context, who follows it on one screen.
type client struct {
	soaking *soaking
	context *session.Context
	// sent are the client ids of the messages, in order; unsure are those of
	// which Temporal did not say that it took them.
	sent   []sentMessage
	unsure map[string]bool

	mu   sync.Mutex // guards what follows
	told []event.Event
	news chan struct{} // closed and replaced when there is something new
}

// sentMessage is a message with its client id.
type sentMessage struct{ id, content string }

// converse talks to a context until torment ends, waits until it rests, and
// checks its log.
func (s *soaking) converse(torment, rest context.Context, name string) error {
	opened, err := s.rig.Contexts.Open(name)
	if err != nil {
		return err
	}
	c := &client{soaking: s, context: opened, unsure: map[string]bool{}, news: make(chan struct{})}
	following, stop := context.WithCancel(rest)
	followed := make(chan error, 1)
	go func() { followed <- c.follow(following) }()

	for i := 0; torment.Err() == nil; i++ {
		if err := c.say(rest, fmt.Sprintf("%s-%d", name, i)); err != nil {
			stop()
			return err
		}
		c.hesitate(torment)
	}
	c.await(rest, func(l ledger) bool { return l.rests() })
	stop()
	if err := <-followed; err != nil {
		return fmt.Errorf("%s: follow: %w", name, err)
	}
	if rest.Err() != nil {
		return fmt.Errorf("%s: %w\n%s", name, context.Cause(rest), tail(c.told))
	}
	return c.check(rest)
}

// say sends a message, and now and then a system prompt or an interruption
// before it. Sometimes the client is too impatient to hear that it was taken.
func (c *client) say(ctx context.Context, key string) error {
	if rand.IntN(8) == 0 {
		c.soaking.counts.asked.Add(1)
		// An error means that there is no context yet, or nobody who heard.
		_ = c.context.Interrupt(ctx)
	}
	message := rig.Message{Key: key, Tokens: 1 + rand.IntN(40), Every: rand.N(20 * time.Millisecond)}
	e := event.New(event.UserMessage{Content: message.String()})
	e.ClientEventID = key
	patience := 10 * time.Second
	if rand.IntN(50) == 0 {
		patience = rand.N(5 * time.Millisecond)
	}
	sending, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_, err := c.context.Send(sending, e)
	if err != nil && ctx.Err() != nil {
		return err
	}
	c.sent = append(c.sent, sentMessage{key, message.String()})
	if err != nil {
		c.unsure[key] = true
		c.soaking.counts.unsure.Add(1)
	} else {
		c.soaking.counts.sent.Add(1)
	}
	return nil
}

// hesitate waits before the next message: not at all, in the middle of the
// answer, or until the context rests.
func (c *client) hesitate(ctx context.Context) {
	switch rand.IntN(4) {
	case 0:
	case 1:
		timer := time.NewTimer(rand.N(300 * time.Millisecond))
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	default:
		c.await(ctx, func(l ledger) bool { return l.rests() })
	}
}

// follow notes what the client is told, until ctx ends.
func (c *client) follow(ctx context.Context) error {
	for e, err := range c.context.Follow(ctx, session.FollowOptions{Deltas: true}) {
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		if e.Tag().Class() == event.ClassEphemeral {
			continue
		}
		switch e.Body.(type) {
		case event.LLMRequestCompleted:
			c.soaking.counts.answered.Add(1)
		case event.LLMRequestInterrupted:
			c.soaking.counts.interrupted.Add(1)
		case event.LLMRequestFailed:
			c.soaking.counts.failed.Add(1)
		}
		c.mu.Lock()
		c.told = append(c.told, e)
		close(c.news)
		c.news = make(chan struct{})
		c.mu.Unlock()
	}
	return nil
}

// await waits until something holds of what the client was told.
func (c *client) await(ctx context.Context, holds func(ledger) bool) {
	l := c.ledger()
	for {
		c.mu.Lock()
		for _, e := range c.told[l.read:] {
			l.note(e)
		}
		news := c.news
		c.mu.Unlock()
		if holds(l) {
			return
		}
		select {
		case <-news:
		case <-ctx.Done():
			return
		}
	}
}
