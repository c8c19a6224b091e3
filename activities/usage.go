package activities

import (
	"context"
	"sync"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// usageTimeout bounds how long a heartbeat waits for the usage so far. Counting tokens can take
// seconds; heartbeats must not be delayed that long.
const usageTimeout = 300 * time.Millisecond

// usageMeter returns the usage of a running attempt within [usageTimeout]. Its zero value is
// ready.
type usageMeter struct {
	mu     sync.Mutex
	model  Model // nil before the request is sent
	newest event.Usage
	// done is closed when the running count ends; nil if none runs.
	done chan struct{}
}

// start starts to measure the request of a model.
func (m *usageMeter) start(model Model) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.model = model
}

// get starts a count, waits for it until usageTimeout or the end of ctx, and returns the newest
// known usage.
func (m *usageMeter) get(ctx context.Context) event.Usage {
	if done := m.count(); done != nil {
		timer := time.NewTimer(usageTimeout)
		defer timer.Stop()
		select {
		case <-done:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.newest
}

// count starts a count unless one runs.
func (m *usageMeter) count() (done <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.model == nil || m.done != nil {
		return m.done
	}
	model, ended := m.model, make(chan struct{})
	m.done = ended
	go func() {
		usage := model.Usage()
		m.mu.Lock()
		m.newest, m.done = usage, nil
		m.mu.Unlock()
		close(ended)
	}()
	return ended
}
