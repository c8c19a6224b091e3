package gateway_test

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// A context exists once its log has an event.
type countingLookups struct {
	fakeClient
	mu    *sync.Mutex
	looks map[string]int
	slow  time.Duration
}

func (c countingLookups) Tenant(string) (countingLookups, error) { return c, nil }

func (c countingLookups) Open(name string) (*countedContext, error) {
	log, err := c.fakeClient.Open(name)
	return &countedContext{log, c}, err
}

func (c countingLookups) look(name string) {
	c.mu.Lock()
	c.looks[name]++
	c.mu.Unlock()
	time.Sleep(c.slow) // bubble time
}

func (c countingLookups) all() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, looks := range c.looks {
		n += looks
	}
	return n
}

type countedContext struct {
	*log
	client countingLookups
}

func (l *countedContext) missing() error {
	l.client.look(l.Name())
	if events, _, err := l.Snapshot(); err != nil || len(events) > 0 {
		return err
	}
	return fmt.Errorf("context %s: %w", l.Name(), client.ErrNoContext)
}

func (l *countedContext) Events(ctx context.Context, from string) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		if err := l.missing(); err != nil {
			yield(event.Event{}, err)
			return
		}
		l.log.Events(ctx, from)(yield)
	}
}

// Follow looks up a missing context once per second, after the delay.
func (l *countedContext) Follow(ctx context.Context, options client.FollowOptions) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for delay := options.Delay; ; delay = time.Second {
			select {
			case <-time.After(delay):
			case <-ctx.Done():
				return
			}
			if l.missing() == nil {
				l.log.Follow(ctx, options)(yield)
				return
			}
		}
	}
}

func (l *countedContext) Attachment(ctx context.Context, id string) (event.FileAttachment, error) {
	if err := l.missing(); err != nil {
		return event.FileAttachment{}, err
	}
	return l.log.Attachment(ctx, id)
}

func (l *countedContext) State(ctx context.Context) (wire.State, error) {
	if err := l.missing(); err != nil {
		return wire.State{}, err
	}
	return l.log.State(ctx)
}

func (l *countedContext) Interrupt(context.Context) error     { return l.missing() }
func (l *countedContext) Close(context.Context, string) error { return l.missing() }

func newCountingLookups(log *log) countingLookups {
	return countingLookups{fakeClient: fakeClient{log: log}, mu: new(sync.Mutex), looks: map[string]int{}, slow: 10 * time.Millisecond}
}

// contextRequests are the requests that require an existing context.
var contextRequests = []struct{ method, path string }{
	{http.MethodGet, "/events"}, {http.MethodGet, "/transcript"}, {http.MethodGet, "/state"},
	{http.MethodGet, "/events/demo:0001/attachment"}, {http.MethodPost, "/interrupt"}, {http.MethodDelete, ""},
}

func TestAnUnknownNameCostsOneLookupPerSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCountingLookups(newLog())
		g := gateway.New(c, gateway.Options{Rate: -1})
		defer g.Close()
		began := time.Now()
		for range 5 {
			var requests sync.WaitGroup
			for i := range 2000 {
				r := contextRequests[i%len(contextRequests)]
				requests.Go(func() {
					require.Equal(t, http.StatusNotFound, ask(t.Context(), g, r.method, "/contexts/demo"+r.path, "").Code)
				})
			}
			requests.Wait()
			time.Sleep(300 * time.Millisecond) // bubble time
		}
		require.Positive(t, c.all())
		require.LessOrEqual(t, c.all(), 1+int(time.Since(began)/time.Second), "10,000 requests in %v", time.Since(began))
		require.Zero(t, gateway.Rooms(g))
	})
}

func TestUnknownNamesLeaveNoRooms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const names = 2_000
		c := newCountingLookups(newLog())
		g := gateway.New(c, gateway.Options{Rate: -1, Streams: -1, StreamsPerAddress: -1})
		defer g.Close()
		leave, cancel := context.WithCancel(t.Context())
		var requests, streams sync.WaitGroup
		var open atomic.Int32
		for i := range names {
			path := fmt.Sprintf("/contexts/c%d/transcript", i)
			if i%2 == 0 {
				requests.Go(func() { require.Equal(t, http.StatusNotFound, ask(t.Context(), g, http.MethodGet, path, "").Code) })
				continue
			}
			open.Add(1)
			streams.Go(func() { ask(leave, g, http.MethodGet, path, "", "Accept", "text/event-stream") })
		}
		requests.Wait()
		synctest.Wait()
		require.Equal(t, int(open.Load()), gateway.Rooms(g), "only streams keep rooms open")
		require.Equal(t, names, c.all())
		cancel()
		streams.Wait()
		synctest.Wait()
		require.Zero(t, gateway.Rooms(g))
		require.Equal(t, names, c.all(), "one lookup per name")
	})
}

func TestWaitingStreamsShareLookups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newLog()
		c := newCountingLookups(log)
		g := gateway.New(c, gateway.Options{Rate: -1, Streams: -1, StreamsPerAddress: -1})
		defer g.Close()
		leave, cancel := context.WithCancel(t.Context())
		defer cancel()
		bodies := make([]string, 100)
		var streams sync.WaitGroup
		began := time.Now()
		for i := range bodies {
			streams.Go(func() {
				bodies[i] = ask(leave, g, http.MethodGet, "/contexts/demo/events", "", "Accept", "text/event-stream").Body.String()
			})
		}
		for range 50 {
			for _, r := range contextRequests {
				require.Equal(t, http.StatusNotFound, ask(t.Context(), g, r.method, "/contexts/demo"+r.path, "").Code)
			}
			time.Sleep(100 * time.Millisecond) // bubble time
		}
		require.LessOrEqual(t, c.all(), 1+int(time.Since(began)/time.Second))
		require.Equal(t, http.StatusAccepted, ask(t.Context(), g, http.MethodPost, "/contexts/demo/events", hello).Code)
		require.Equal(t, http.StatusOK, ask(t.Context(), g, http.MethodGet, "/contexts/demo/state", "").Code, "the context exists after Send")
		time.Sleep(2 * time.Second) // bubble time
		require.Equal(t, 1, gateway.Rooms(g))
		require.Equal(t, http.StatusOK, ask(t.Context(), g, http.MethodGet, "/contexts/demo/events", "").Code)
		cancel()
		streams.Wait()
		for _, body := range bodies {
			require.Contains(t, body, "id: demo:0001")
		}
		require.Equal(t, 1, gateway.Rooms(g), "the room of an existing context lingers")
	})
}

func TestAFailedLookupDelaysOthersOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newLog()
		log.Fail(client.ErrUnreachable)
		c := newCountingLookups(log)
		c.slow = 10 * time.Second
		g := gateway.New(c, gateway.Options{Rate: -1})
		defer g.Close()
		began := time.Now()
		var requests sync.WaitGroup
		for range 50 {
			requests.Go(func() {
				require.Equal(t, http.StatusServiceUnavailable, ask(t.Context(), g, http.MethodGet, "/contexts/demo/state", "").Code)
			})
		}
		requests.Wait()
		require.Equal(t, 20*time.Second, time.Since(began), "one lookup, then all others concurrently")
	})
}
