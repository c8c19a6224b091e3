package main

import (
	"context"
	"math/rand/v2"
)

// step is one kind of hostile act. An error is what the door answered.
type step struct {
	name   string
	weight int
	run    func(context.Context, *target) error
}

var steps = []step{
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
	{"parts", 2, forgeParts},
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

func (o options) choose(r *rand.Rand) step {
	sum := 0
	for _, s := range steps {
		sum += s.weight
	}
	n := r.IntN(sum)
	for _, s := range steps {
		if n -= s.weight; n < 0 {
			return s
		}
	}
	panic("unreachable")
}

// random is the source of a step of a context.
func (o options) random(context, step int) *rand.Rand {
	return rand.New(rand.NewPCG(o.seed, uint64(context)<<32|uint64(step)))
}
