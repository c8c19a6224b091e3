package rig

import (
	"context"
	"fmt"
	"sync"
	"time"
)

type Kind string

// The kinds of notes. The key is the key of a message unless noted otherwise.
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
	// Broken: a process failed; Value is the error.
	Broken Kind = "broken"
)

// Note is an observation of a process.
type Note struct {
	Kind  Kind      `json:"kind"`
	Key   string    `json:"key,omitempty"`
	At    time.Time `json:"at"`
	Value string    `json:"value,omitempty"`
	// First is when an observer saw the first token; zero without tokens.
	First time.Time `json:"first,omitzero"`
	// Delays are the times from writing to observing each token.
	Delays []time.Duration `json:"delays,omitempty"`
}

// Notes collects the notes of all processes and keeps the first one of each kind and key.
// It is safe for concurrent use.
type Notes struct {
	mu      sync.Mutex
	seen    map[noteKey]Note
	waiting map[noteKey]chan struct{}
	err     error
	broken  chan struct{}
}

type noteKey struct {
	kind Kind
	key  string
}

func newNotes() *Notes {
	return &Notes{seen: map[noteKey]Note{}, waiting: map[noteKey]chan struct{}{}, broken: make(chan struct{})}
}

func (n *Notes) add(note Note) {
	if note.Kind == Broken {
		n.fail(fmt.Errorf("%s: %s", note.Key, note.Value))
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	k := noteKey{note.Kind, note.Key}
	if _, ok := n.seen[k]; ok {
		return
	}
	n.seen[k] = note
	if waiting, ok := n.waiting[k]; ok {
		close(waiting)
		delete(n.waiting, k)
	}
}

func (n *Notes) fail(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.err == nil {
		n.err = err
		close(n.broken)
	}
}

// Await waits for a note.
func (n *Notes) Await(ctx context.Context, kind Kind, key string) (Note, error) {
	k := noteKey{kind, key}
	n.mu.Lock()
	note, ok := n.seen[k]
	waiting := n.waiting[k]
	if !ok && waiting == nil {
		waiting = make(chan struct{})
		n.waiting[k] = waiting
	}
	n.mu.Unlock()
	if ok {
		return note, nil
	}
	select {
	case <-waiting:
		n.mu.Lock()
		defer n.mu.Unlock()
		return n.seen[k], nil
	case <-n.broken:
		return Note{}, n.err
	case <-ctx.Done():
		return Note{}, fmt.Errorf("wait for %q of %q: %w", kind, key, context.Cause(ctx))
	}
}

// Find returns a note if it has arrived.
func (n *Notes) Find(kind Kind, key string) (Note, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	note, ok := n.seen[noteKey{kind, key}]
	return note, ok
}
