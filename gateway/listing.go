package gateway

import (
	"context"
	"iter"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"

	"github.com/seed-9ed7edd4/chronicle/session"
)

// listing keeps the head of the list of contexts for a moment, for all who ask: every
// page that is open does so every two seconds, and Temporal lists only some ten times
// a second for a whole namespace.
type listing struct {
	// ping is asked before each reading: pages learn of an outage by their list.
	ping func(ctx context.Context) error
	list func(ctx context.Context, query string) iter.Seq2[session.Summary, error]
	// pace spreads readings, however often changes ask for new ones.
	pace     *rate.Limiter
	readings singleflight.Group

	mu sync.Mutex
	// changes counts what was done here that a list should show. A reading that
	// began before is for nobody who asks after it.
	changes int
	kept    *head
}

const (
	// headSize is how many contexts a head has at most. Temporal gives so many at
	// once, so it costs what the first of them would.
	headSize = 1000
	// headFor is how long a head is given out.
	headFor = time.Second
	// headEvery is how much time there is between two readings.
	headEvery = 200 * time.Millisecond
)

func newListing(
	ping func(context.Context) error, list func(context.Context, string) iter.Seq2[session.Summary, error],
) *listing {
	return &listing{ping: ping, list: list, pace: rate.NewLimiter(rate.Every(headEvery), 1)}
}

// head is the list of contexts from its beginning, as it was at a time.
type head struct {
	at       time.Time
	contexts []session.Summary
	whole    bool // there are no others
}

// all yields the contexts of the head.
func (h *head) all() iter.Seq2[session.Summary, error] {
	return func(yield func(session.Summary, error) bool) {
		for _, s := range h.contexts {
			if !yield(s, nil) {
				return
			}
		}
	}
}

// change lets whoever asks from now on see what was done before.
func (l *listing) change() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changes++
	l.kept = nil
}

// head returns the head that is kept, or waits for another one. That is read for all
// who wait, and does not end with any of them.
func (l *listing) head(ctx context.Context) (*head, error) {
	l.mu.Lock()
	kept, changes := l.kept, l.changes
	l.mu.Unlock()
	if kept != nil && time.Since(kept.at) < headFor {
		return kept, nil
	}
	reading := l.readings.DoChan(strconv.Itoa(changes), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerTimeout)
		defer cancel()
		return l.read(ctx, changes)
	})
	select {
	case read := <-reading:
		h, _ := read.Val.(*head)
		return h, read.Err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// read reads the head from Temporal, and keeps it unless there were changes meanwhile.
func (l *listing) read(ctx context.Context, changes int) (*head, error) {
	if err := l.pace.Wait(ctx); err != nil {
		return nil, err
	}
	if err := l.ping(ctx); err != nil {
		return nil, err
	}
	h := &head{at: time.Now(), whole: true}
	for s, err := range l.list(ctx, "") {
		if err != nil {
			return nil, err
		}
		h.contexts = append(h.contexts, s)
		if len(h.contexts) == headSize {
			h.whole = false // as far as is known
			break
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.changes == changes {
		l.kept = h
	}
	return h, nil
}
