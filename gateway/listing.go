package gateway

import (
	"context"
	"iter"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"

	"github.com/seed-9ed7edd4/chronicle/client"
)

// listing caches the head of the list of contexts of a tenant. Every open page reads it every two seconds,
// while Temporal by default allows ten list calls per second and namespace.
type listing struct {
	ping  func(ctx context.Context) error // called before each read, so that pages learn of an outage at once
	list  func(ctx context.Context, query string) iter.Seq2[client.Summary, error]
	pace  *rate.Limiter // of all tenants
	turn  chan struct{} // held by the read that waits for pace
	reads singleflight.Group

	mu         sync.Mutex
	generation int // a read of an older generation is not used for later requests
	cached     *head
}

const (
	headSize     = 1000 // page size of Temporal, so a head costs one call
	headTTL      = time.Second
	headInterval = 200 * time.Millisecond
)

func newListing(
	pace *rate.Limiter, ping func(context.Context) error, list func(context.Context, string) iter.Seq2[client.Summary, error],
) *listing {
	return &listing{pace: pace, turn: make(chan struct{}, 1), ping: ping, list: list}
}

// newListPace returns the limit of reads, which all lists of a namespace share.
func newListPace() *rate.Limiter { return rate.NewLimiter(rate.Every(headInterval), 1) }

type head struct {
	at       time.Time
	contexts []client.Summary
	complete bool // there are no further contexts
}

func (h *head) all() iter.Seq2[client.Summary, error] {
	return func(yield func(client.Summary, error) bool) {
		for _, s := range h.contexts {
			if !yield(s, nil) {
				return
			}
		}
	}
}

func (l *listing) invalidate() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.generation++
	l.cached = nil
}

// head lets concurrent callers share a read, which continues when one of them leaves.
func (l *listing) head(ctx context.Context) (*head, error) {
	l.mu.Lock()
	cached, generation := l.cached, l.generation
	l.mu.Unlock()
	if cached != nil && time.Since(cached.at) < headTTL {
		return cached, nil
	}
	call := l.reads.DoChan(strconv.Itoa(generation), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerTimeout)
		defer cancel()
		return l.read(ctx, generation)
	})
	select {
	case read := <-call:
		h, _ := read.Val.(*head)
		return h, read.Err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// awaitPace lets one read of a tenant wait at a time, so that many of one do not delay those of others.
func (l *listing) awaitPace(ctx context.Context) error {
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-l.turn }()
	return l.pace.Wait(ctx)
}

func (l *listing) read(ctx context.Context, generation int) (*head, error) {
	if err := l.awaitPace(ctx); err != nil {
		return nil, err
	}
	if err := l.ping(ctx); err != nil {
		return nil, err
	}
	h := &head{at: time.Now(), complete: true}
	for s, err := range l.list(ctx, "") {
		if err != nil {
			return nil, err
		}
		h.contexts = append(h.contexts, s)
		if len(h.contexts) == headSize {
			h.complete = false // there may be more
			break
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.generation == generation {
		l.cached = h
	}
	return h, nil
}
