package gateway

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
)

// quota rejects input and forks of a tenant that stores too much, until it deletes contexts. The usage is measured in the
// background while the tenant sends, so it may exceed the limits by what it sends in the meantime, and before a rejection.
type quota struct {
	contexts int   // 0 or less: unlimited
	bytes    int64 // 0 or less: unlimited
	measure  func(ctx context.Context, names ...string) (client.StoreUsage, error)
	ctx      context.Context // of measurements
	log      *slog.Logger

	mu        sync.Mutex
	usage     client.StoreUsage    // at the newest measurement; zero before the first
	created   map[string]time.Time // new contexts that it lacks
	measured  time.Time
	took      time.Duration
	measuring chan struct{} // closed by its end; nil: none runs
}

const (
	usageAge = time.Minute // after which the usage is measured again
	fullAge  = time.Second // the same before a rejection, since deletions make room
	// createdAge is when a new context counts no more if no worker has opened it.
	createdAge = 10 * time.Minute
	// A measurement is followed by a pause of measureShare times its duration.
	measureShare = 20
)

func (q *quota) isLimited() bool { return q.contexts > 0 || q.bytes > 0 }

// admit returns an error if the tenant may not send to a context. It reports whether it has counted a new one.
func (q *quota) admit(ctx context.Context, name string, isNew bool) (isCounted bool, err error) {
	if !q.isLimited() {
		return false, nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	age := usageAge
	isCounted, err = q.check(name, isNew)
	if err != nil {
		age = fullAge
	}
	if q.measuring == nil && time.Since(q.measured) >= max(age, measureShare*q.took) {
		q.measuring = make(chan struct{})
		go q.update()
	}
	if running := q.measuring; err != nil && running != nil {
		q.mu.Unlock()
		select {
		case <-running:
		case <-ctx.Done():
		}
		q.mu.Lock()
		return q.check(name, isNew)
	}
	return isCounted, err
}

func (q *quota) check(name string, isNew bool) (isCounted bool, err error) {
	switch {
	case q.bytes > 0 && q.usage.Bytes >= q.bytes:
		return false, problem(problemQuota, http.StatusInsufficientStorage, "The tenant has no space left",
			"its contexts occupy the %d MiB that they may; delete some, or ask the operator for more", q.bytes>>20)
	case q.contexts <= 0 || !isNew || !q.created[name].IsZero():
		return false, nil
	case q.usage.Contexts+len(q.created) >= q.contexts:
		return false, problem(problemQuota, http.StatusForbidden, "The tenant has too many contexts",
			"it may have %d; delete some, or ask the operator for more", q.contexts)
	}
	q.created[name] = time.Now()
	return true, nil
}

// rename replaces the name of a new context; "": it does not count, since it was not created or is being deleted.
func (q *quota) rename(from, to string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if at, ok := q.created[from]; ok && from != to {
		delete(q.created, from)
		if to != "" {
			q.created[to] = at
		}
	}
}

func (q *quota) update() {
	began := time.Now()
	q.mu.Lock()
	created := slices.Collect(maps.Keys(q.created))
	q.mu.Unlock()
	usage, err := q.measure(q.ctx, created...)
	if err != nil && q.ctx.Err() == nil {
		q.log.Error("the usage of a tenant was not measured", "error", event.Redact(err.Error(), 0))
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	close(q.measuring)
	q.measuring, q.measured, q.took = nil, time.Now(), time.Since(began)
	if err != nil {
		return
	}
	q.usage = usage
	for _, name := range created {
		if _, isMissing := slices.BinarySearch(usage.Missing, name); !isMissing || began.Sub(q.created[name]) > createdAge {
			delete(q.created, name)
		}
	}
}
