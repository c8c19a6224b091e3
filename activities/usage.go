package activities

import (
	"context"
	"sync"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// usageTimeout bounds how long a heartbeat waits for the usage so far: counting tokens can take
// seconds.
const usageTimeout = 300 * time.Millisecond

// usageMeter returns the usage of a running attempt. Its zero value is ready.
type usageMeter struct {
	mu     sync.Mutex
	model  Model // nil before the request is sent
	newest event.Usage
	done   chan struct{} // closed when the running count ends; nil: none runs
}

func (m *usageMeter) start(model Model) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.model = model
}

// get starts a count and returns the newest known usage, after usageTimeout at the latest.
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
