package rig

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Kind says what a note is about.
type Kind string

// The kinds of notes. The key is that of a message, unless it says otherwise.
const (
	// Ready: a process is, and Value is where it listens.
	Ready Kind = "ready"
	// Watching: the observer has seen how what it follows begins. The key is its
	// name.
	Watching Kind = "watching"
	// Requested: the model has the request. The key of a repeated request is its
	// RepeatKey.
	Requested Kind = "requested"
	// Aborted: the client of the model has gone in the middle of the answer.
	Aborted Kind = "aborted"
	// Ended: an observer has seen the end of the turn.
	Ended Kind = "ended"
	// Viewing: so many viewers follow a context. The key says how many and which.
	Viewing Kind = "viewing"
	// Viewed: all viewers have seen the end of the turn.
	Viewed Kind = "viewed"
	// Broken: a process cannot do what it was asked to; Value is the error.
	Broken Kind = "broken"
)

// Note is what a process saw, and when.
type Note struct {
	Kind  Kind      `json:"kind"`
	Key   string    `json:"key,omitempty"`
	At    time.Time `json:"at"`
	Value string    `json:"value,omitempty"`
	// First is when an observer saw the first token; zero when it saw none.
	First time.Time `json:"first,omitzero"`
	// Delays are, for each token that an observer saw, how long it was on its
	// way.
	Delays []time.Duration `json:"delays,omitempty"`
}

// Notes collects the notes of all processes. The first of a kind and a key is
// kept. It is safe for concurrent use.
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

// fail ends all waiting.
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

// Find returns a note that is there already.
func (n *Notes) Find(kind Kind, key string) (Note, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	note, ok := n.seen[noteKey{kind, key}]
	return note, ok
}
