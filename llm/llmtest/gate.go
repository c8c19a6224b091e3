package llmtest

import (
	"context"
	"fmt"
	"sync"
)

// Gate is where a step waits for the test. It is shut until the test opens it;
// a server that is closed does not wait any more.
type Gate struct {
	openOnce  sync.Once
	reachOnce sync.Once
	opened    chan struct{}
	reached   chan struct{}
}

// NewGate returns a gate that is shut.
func NewGate() *Gate {
	return &Gate{opened: make(chan struct{}), reached: make(chan struct{})}
}

// Open lets the step go on. It may be called more than once.
func (g *Gate) Open() { g.openOnce.Do(func() { close(g.opened) }) }

// Reached waits until a step stands at the gate: everything before it was sent.
func (g *Gate) Reached(ctx context.Context) error {
	select {
	case <-g.reached:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("llmtest: no step has reached the gate: %w", context.Cause(ctx))
	}
}

// wait stands at the gate until it is open or ctx is done.
func (g *Gate) wait(ctx context.Context) error {
	g.reachOnce.Do(func() { close(g.reached) })
	select {
	case <-g.opened:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
