package rig

import (
	"context"
	"fmt"
	"sync"
	"time"
)

type Kind string

// The kinds of observations. The key is the key of a message unless noted otherwise.
const (
	// Ready: a process has started; Value is its address.
	Ready Kind = "ready"
	// Watching: the observer has seen the start of a context or workflow; the key is its
	// name.
	Watching Kind = "watching"
	// Requested: the model has received a request; the key is a RepeatKey.
	Requested Kind = "requested"
	// Aborted: the client of the model disconnected during the answer.
	Aborted Kind = "aborted"
	// Ended: an observer has seen the end of the turn.
	Ended Kind = "ended"
	// Viewing: all viewers of a context are connected; the key has their number and the
	// context.
	Viewing Kind = "viewing"
	// Viewed: all viewers have seen the end of the turn.
	Viewed Kind = "viewed"
	// Invalid: the model has received a request that violates a rule; Value is the problem.
	Invalid Kind = "invalid"
	// Broken: a process failed; Value is the error.
	Broken Kind = "broken"
)

type Observation struct {
	Kind  Kind      `json:"kind"`
	Key   string    `json:"key,omitempty"`
	At    time.Time `json:"at"`
	Value string    `json:"value,omitempty"`
	// Size is that of the request in bytes.
	Size int `json:"size,omitempty"`
	// First is when an observer saw the first token; zero without tokens.
	First time.Time `json:"first,omitzero"`
	// Delays are the times from writing to observing each token.
	Delays []time.Duration `json:"delays,omitempty"`
}

// Observations collects the observations of all processes and keeps the first one of each kind and key.
// It is safe for concurrent use.
type Observations struct {
	mu      sync.Mutex
	seen    map[observationKey]Observation
	waiting map[observationKey]chan struct{}
	err     error
	broken  chan struct{}
}

type observationKey struct {
	kind Kind
	key  string
}

func newObservations() *Observations {
	return &Observations{seen: map[observationKey]Observation{}, waiting: map[observationKey]chan struct{}{}, broken: make(chan struct{})}
}

func (all *Observations) add(o Observation) {
	if o.Kind == Broken {
		all.fail(fmt.Errorf("%s: %s", o.Key, o.Value))
		return
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	k := observationKey{o.Kind, o.Key}
	if _, ok := all.seen[k]; ok {
		return
	}
	all.seen[k] = o
	if waiting, ok := all.waiting[k]; ok {
		close(waiting)
		delete(all.waiting, k)
	}
}

func (all *Observations) fail(err error) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.err == nil {
		all.err = err
		close(all.broken)
	}
}

// failure returns the first failure of a process; nil: none.
func (all *Observations) failure() error {
	all.mu.Lock()
	defer all.mu.Unlock()
	return all.err
}

func (all *Observations) Await(ctx context.Context, kind Kind, key string) (Observation, error) {
	k := observationKey{kind, key}
	all.mu.Lock()
	o, ok := all.seen[k]
	waiting := all.waiting[k]
	if !ok && waiting == nil {
		waiting = make(chan struct{})
		all.waiting[k] = waiting
	}
	all.mu.Unlock()
	if ok {
		return o, nil
	}
	select {
	case <-waiting:
		all.mu.Lock()
		defer all.mu.Unlock()
		return all.seen[k], nil
	case <-all.broken:
		return Observation{}, all.err
	case <-ctx.Done():
		return Observation{}, fmt.Errorf("wait for %q of %q: %w", kind, key, context.Cause(ctx))
	}
}

func (all *Observations) Find(kind Kind, key string) (Observation, bool) {
	all.mu.Lock()
	defer all.mu.Unlock()
	o, ok := all.seen[observationKey{kind, key}]
	return o, ok
}

// All returns the observations of a kind, in any order.
func (all *Observations) All(kind Kind) (found []Observation) {
	all.mu.Lock()
	defer all.mu.Unlock()
	for k, o := range all.seen {
		if k.kind == kind {
			found = append(found, o)
		}
	}
	return found
}
