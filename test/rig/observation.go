package rig

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"
)

type Kind string

// The kinds of observations. The key is the key of a message unless noted otherwise.
const (
	// Watching: an observer has seen the start of a context or workflow; the key is its name.
	Watching Kind = "watching"
	// Requested: the model has received a request; the key is a [RepeatKey].
	Requested Kind = "requested"
	// Aborted: the client of the model disconnected during the answer.
	Aborted Kind = "aborted"
	// Ended: an observer has seen the end of the turn; Value is how it ended.
	Ended Kind = "ended"
	// Invalid: the model has received a request that violates a rule; Value is the problem.
	Invalid Kind = "invalid"
)

type Observation struct {
	Kind  Kind      `json:"kind"`
	Key   string    `json:"key,omitempty"`
	At    time.Time `json:"at"`
	Value string    `json:"value,omitempty"`
	// First is when an observer saw the first token; zero without tokens.
	First time.Time `json:"first,omitzero"`
	// Delays are the times from writing to observing each token.
	Delays []time.Duration `json:"delays,omitempty"`
}

// Observations keeps the first observation of each kind and key. It is safe for concurrent use.
type Observations struct {
	mu      sync.Mutex
	all     map[observationKey]*entry
	failed  chan struct{} // closed after the first failure of an observer
	failure error
}

type observationKey struct {
	kind Kind
	key  string
}

// entry is an observation, or the wait for it.
type entry struct {
	Observation
	seen chan struct{} // closed when it has been made
}

func newObservations() *Observations {
	return &Observations{all: map[observationKey]*entry{}, failed: make(chan struct{})}
}

// of requires the lock.
func (o *Observations) of(kind Kind, key string) *entry {
	k := observationKey{kind, key}
	e := o.all[k]
	if e == nil {
		e = &entry{seen: make(chan struct{})}
		o.all[k] = e
	}
	return e
}

func (e *entry) isSeen() bool { return !e.At.IsZero() }

func (o *Observations) add(made Observation) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if e := o.of(made.Kind, made.Key); !e.isSeen() {
		e.Observation = made
		close(e.seen)
	}
}

func (o *Observations) addLine(line []byte) {
	var made Observation
	if err := json.Unmarshal(line, &made); err != nil {
		o.fail(fmt.Errorf("observation %q: %w", line, err))
		return
	}
	o.add(made)
}

func (o *Observations) fail(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.failure == nil {
		o.failure = err
		close(o.failed)
	}
}

func (o *Observations) Await(ctx context.Context, kind Kind, key string) (Observation, error) {
	o.mu.Lock()
	e := o.of(kind, key)
	o.mu.Unlock()
	select {
	case <-e.seen:
		return e.Observation, nil
	case <-o.failed:
		return Observation{}, o.failure
	case <-ctx.Done():
		return Observation{}, fmt.Errorf("wait for %q of %q: %w", kind, key, context.Cause(ctx))
	}
}

func (o *Observations) Find(kind Kind, key string) (Observation, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := o.all[observationKey{kind, key}]
	if e == nil || !e.isSeen() {
		return Observation{}, false
	}
	return e.Observation, true
}

// Of returns the observations of a kind, in any order.
func (o *Observations) Of(kind Kind) (made []Observation) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for k, e := range o.all {
		if k.kind == kind && e.isSeen() {
			made = append(made, e.Observation)
		}
	}
	return made
}
