package index

import (
	"context"
	"sync"
	"time"
)

// queue has the names of contexts to read, each once, in order. A name that is added while it is read is read again.
type queue struct {
	mu      sync.Mutex
	added   *sync.Cond
	empty   *sync.Cond
	names   []string
	states  map[string]state
	delayed map[delayed]bool // timers that run
	closed  bool
}

type delayed struct {
	name  string
	delay time.Duration
}

type state int

const (
	queued state = iota + 1
	running
	again // running, and added in the meantime
)

func newQueue() *queue {
	q := &queue{states: map[string]state{}, delayed: map[delayed]bool{}}
	q.added, q.empty = sync.NewCond(&q.mu), sync.NewCond(&q.mu)
	return q
}

func (q *queue) add(name string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	switch q.states[name] {
	case 0:
		q.states[name] = queued
		q.names = append(q.names, name)
		q.added.Signal()
	case running:
		q.states[name] = again
	}
}

// addAfter adds a name after a delay, unless it is about to. Then is called afterwards; nil: nothing.
func (q *queue) addAfter(delay time.Duration, name string, then func()) {
	key := delayed{name, delay}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.delayed[key] || q.closed {
		return
	}
	q.delayed[key] = true
	time.AfterFunc(delay, func() {
		q.mu.Lock()
		delete(q.delayed, key)
		q.mu.Unlock()
		q.add(name)
		if then != nil {
			then()
		}
	})
}

// next waits for a name. ok is false after close.
func (q *queue) next() (name string, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.names) == 0 && !q.closed {
		q.added.Wait()
	}
	if q.closed {
		return "", false
	}
	name, q.names = q.names[0], q.names[1:]
	q.states[name] = running
	return name, true
}

// done ends what next began.
func (q *queue) done(name string) {
	q.mu.Lock()
	isAgain := q.states[name] == again
	delete(q.states, name)
	if len(q.states) == 0 {
		q.empty.Broadcast()
	}
	q.mu.Unlock()
	if isAgain {
		q.add(name)
	}
}

// awaitEmpty waits until all names were read, or ctx is done.
func (q *queue) awaitEmpty(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.empty.Broadcast()
	})()
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.states) > 0 && ctx.Err() == nil {
		q.empty.Wait()
	}
	return ctx.Err()
}

// pending returns the number of names that were not read to the end.
func (q *queue) pending() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.states)
}

func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.added.Broadcast()
}
