package client

import "sync"

// wakes ends the pauses of those that follow a context of this client when the client
// sends to it: a new context, or a new session, is found at once and not at their next
// look.
type wakes struct {
	mu sync.Mutex
	of map[string]map[chan struct{}]bool
}

// join returns a channel that has a value when there may be something new in a context.
func (w *wakes) join(contextName string) (wake chan struct{}, leave func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.of == nil {
		w.of = map[string]map[chan struct{}]bool{}
	}
	if w.of[contextName] == nil {
		w.of[contextName] = map[chan struct{}]bool{}
	}
	wake = make(chan struct{}, 1)
	w.of[contextName][wake] = true
	return wake, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if delete(w.of[contextName], wake); len(w.of[contextName]) == 0 {
			delete(w.of, contextName)
		}
	}
}

func (w *wakes) wake(contextName string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for wake := range w.of[contextName] {
		signal(wake)
	}
}

// signal leaves a value in a channel that has room for one.
func signal(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}
