package llmtest

import (
	"context"
	"fmt"
	"sync"
)

// Gate blocks a step until the test opens it, the client disconnects or the server is closed.
type Gate struct {
	openOnce  sync.Once
	reachOnce sync.Once
	opened    chan struct{}
	reached   chan struct{}
}

// NewGate returns a closed gate.
func NewGate() *Gate {
	return &Gate{opened: make(chan struct{}), reached: make(chan struct{})}
}

// Open releases the step. It may be called more than once.
func (g *Gate) Open() { g.openOnce.Do(func() { close(g.opened) }) }

// Reached waits until a step blocks at the gate: everything before it was sent.
func (g *Gate) Reached(ctx context.Context) error {
	select {
	case <-g.reached:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("llmtest: no step has reached the gate: %w", context.Cause(ctx))
	}
}

func (g *Gate) wait(ctx context.Context) error {
	g.reachOnce.Do(func() { close(g.reached) })
	select {
	case <-g.opened:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
