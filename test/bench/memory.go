package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/test/rig"
)

const mb = 1e6

// memory measures an idle worker, and then has 500 contexts talk concurrently in three rounds, and checks that all
// turns complete. Then it gives another worker 1,000 contexts of 1 MB each.
func memory(r *runner) error {
	if err := r.replaceWorker(); err != nil {
		return err
	}
	if err := r.idle(); err != nil {
		return err
	}
	talkers := make([]*talker, r.times(500))
	for i := range talkers {
		talkers[i] = r.context(fmt.Sprintf("many-%d", i))
	}
	var peak, after samples
	for round := range 3 {
		say := func(key string) rig.Message { return message(fmt.Sprintf("%s-%d", key, round)) }
		_, _, err := talkAtOnce(len(talkers), 1, say, func(i int) *talker { return talkers[i] })
		if err != nil {
			return err
		}
		now, highest := r.worker.Memory()
		peak, after = append(peak, float64(highest)/mb), append(after, float64(now)/mb)
	}
	r.report.add("worker_rss_500_mb", "MB", peak)
	// The growth from the first round to the last.
	r.report.add("worker_rss_500_growth_mb", "MB", samples{after[len(after)-1] - after[0]})

	if err := r.replaceWorker(); err != nil {
		return err
	}
	var filling errgroup.Group
	filling.SetLimit(8)
	for i := range r.times(1000) {
		filling.Go(func() error { return r.fill(fmt.Sprintf("cached-%d", i), prose(i, 1_000_000)) })
	}
	err := filling.Wait()
	now, _ := r.worker.Memory()
	r.report.add("worker_rss_1000_cached_1mb_mb", "MB", samples{float64(now) / mb})
	return err
}

// idle measures the CPU time of a new worker without contexts.
func (r *runner) idle() error {
	time.Sleep(5 * time.Second) // for what follows its start
	before, err := rig.CPU(r.worker.PID())
	if err != nil {
		return err
	}
	time.Sleep(20 * time.Second)
	after, err := rig.CPU(r.worker.PID())
	var used samples
	used.add(after - before)
	r.report.add("worker_idle_cpu_20s_ms", "ms", used)
	return err
}

// fill creates a context with one message that triggers no turn, and returns when it is in the log.
func (r *runner) fill(name, content string) error {
	ctx, cancel := context.WithTimeout(r.ctx, turnTimeout)
	defer cancel()
	c, err := r.Contexts.Open(name)
	if err != nil {
		return err
	}
	if _, err := c.Send(ctx, note(content)); err != nil {
		return err
	}
	for e, err := range c.Follow(ctx, client.FollowOptions{}) {
		if err != nil || e.Tag() == event.TagUserMessage {
			return err
		}
	}
	return ctx.Err()
}

// note triggers no turn.
func note(content string) event.Event {
	return event.New(event.UserMessage{Content: content, TriggersTurn: new(false)})
}

// prose returns random words that compress about as well as prose, of the given size in bytes. It is deterministic
// for a seed.
func prose(seed, bytes int) string {
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
