package client

import "sync"

// notifier wakes the followers of this process when the client sends, before their next poll.
type notifier struct {
	mu        sync.Mutex
	followers map[string]map[chan struct{}]bool // by context name
}

func (n *notifier) subscribe(contextName string) (wake chan struct{}, unsubscribe func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.followers == nil {
		n.followers = map[string]map[chan struct{}]bool{}
	}
	if n.followers[contextName] == nil {
		n.followers[contextName] = map[chan struct{}]bool{}
	}
	wake = make(chan struct{}, 1)
	n.followers[contextName][wake] = true
	return wake, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if delete(n.followers[contextName], wake); len(n.followers[contextName]) == 0 {
			delete(n.followers, contextName)
		}
	}
}

func (n *notifier) notify(contextName string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for wake := range n.followers[contextName] {
		trySend(wake)
	}
}

func trySend(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}
