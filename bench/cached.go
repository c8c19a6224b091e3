package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/seed-9ed7edd4/chronicle/bench/rig"
	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
)

// cached gives a new worker 1,000 contexts of 1 MB each, twice what it caches by default,
// and measures its memory.
func cached(r *runner) error {
	if err := r.replaceWorker(); err != nil {
		return err
	}
	contexts := r.times(1000)
	const senders = 8
	var wg sync.WaitGroup
	errs := make([]error, senders)
	for s := range senders {
		wg.Go(func() {
			for i := s; i < contexts && errs[s] == nil; i += senders {
				errs[s] = fill(r.ctx, r.rig.Contexts, fmt.Sprintf("cached-%d", i), text(i, 1_000_000))
			}
		})
	}
	wg.Wait()
	r.report.add("worker_rss_1000_cached_1mb_mb", "MB", samples{memoryOf(r.worker)})
	return errors.Join(errs...)
}

// fill creates a context with one message that triggers no turn, and returns when it is
// in the log.
func fill(ctx context.Context, contexts *rig.Contexts, name, content string) error {
	ctx, cancel := context.WithTimeout(ctx, turnTimeout)
	defer cancel()
	c, err := contexts.Open(name)
	if err != nil {
		return err
	}
	if _, err := c.Send(ctx, event.New(event.UserMessage{Content: content, TriggersTurn: new(false)})); err != nil {
		return err
	}
	for e, err := range c.Follow(ctx, client.FollowOptions{}) {
		if err != nil || e.Tag() == event.TagUserMessage {
			return err
		}
	}
	return ctx.Err()
}

// text returns random words that compress about as well as prose, of the given size in
// bytes. It is deterministic for a seed.
func text(seed, bytes int) string {
	random := rand.New(rand.NewPCG(uint64(seed), 0))
	words := make([]string, 2_000)
	for i := range words {
		word := make([]byte, 2+random.IntN(9))
		for j := range word {
			word[j] = byte('a' + random.IntN(26))
		}
		words[i] = string(word) + " "
	}
	out := make([]byte, 0, bytes+16)
	for len(out) < bytes {
		out = append(out, words[random.IntN(len(words))]...)
	}
	return string(out[:bytes])
}
