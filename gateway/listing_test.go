package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/gateway"
	"github.com/seed-9ed7edd4/chronicle/gateway/auth"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// slowList is a client with a slow list that counts reads.
type slowList struct {
	fakeClient
	delay               time.Duration
	reads, contextsRead *atomic.Int32 // reads, and contexts read
	pingErr             error         // the result of Ping
}

func newSlowList(delay time.Duration, list ...client.Summary) slowList {
	return slowList{fakeClient: fakeClient{log: newLog(), list: list}, delay: delay, reads: new(atomic.Int32), contextsRead: new(atomic.Int32)}
}

func (c slowList) Tenant(string) (slowList, error) { return c, nil }

func (c slowList) Ping(context.Context) error { return c.pingErr }

func (c slowList) List(ctx context.Context, query string) iter.Seq2[client.Summary, error] {
	return func(yield func(client.Summary, error) bool) {
		c.reads.Add(1)
		select {
		case <-time.After(c.delay):
		case <-ctx.Done():
			yield(client.Summary{}, ctx.Err())
			return
		}
		for s, err := range c.fakeClient.List(ctx, query) {
			if c.contextsRead.Add(1); !yield(s, err) {
				return
			}
		}
	}
}

func summaries(n int) []client.Summary {
	began := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	list := make([]client.Summary, n)
	for i := range list {
		list[i] = client.Summary{
			ContextName: fmt.Sprintf("demo-%d", i), Status: wire.StatusIdle, StartedAt: began.Add(-time.Duration(i) * time.Second),
		}
	}
	return list
}

func TestTheListIsCachedForOneSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newSlowList(100*time.Millisecond, summaries(3)...)
		g := gateway.New(c, gateway.Options{Rate: -1})
		for range 100 {
			go func() {
				got := ask(t.Context(), g, http.MethodGet, "/contexts", "")
				if got.Code != http.StatusOK || !strings.Contains(got.Body.String(), "demo-2") {
					t.Error(got.Body)
				}
			}()
		}
		time.Sleep(999 * time.Millisecond) // bubble time
		require.JSONEq(t, `{"contexts":[]}`, ask(t.Context(), g, http.MethodGet, "/contexts?q=other", "").Body.String())
		require.EqualValues(t, 1, c.reads.Load())
		time.Sleep(time.Millisecond) // bubble time: the cache expires
		ask(t.Context(), g, http.MethodGet, "/contexts", "")
		require.EqualValues(t, 2, c.reads.Load())
	})
}

func TestADisconnectDoesNotCancelASharedListRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newSlowList(100*time.Millisecond, summaries(3)...)
		g := gateway.New(c, gateway.Options{Rate: -1})
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan int)
		go func() { left <- ask(ctx, g, http.MethodGet, "/contexts", "").Code }()
		synctest.Wait() // the read has started
		stayed := make(chan int)
		go func() { stayed <- ask(t.Context(), g, http.MethodGet, "/contexts", "").Code }()
		synctest.Wait()
		leave()
		require.Equal(t, http.StatusRequestTimeout, <-left, "at once")
		require.Equal(t, http.StatusOK, <-stayed)
		require.EqualValues(t, 1, c.reads.Load())
	})
}

func TestChangesInvalidateTheList(t *testing.T) {
	for _, test := range []struct{ method, path, body string }{
		{http.MethodPost, "/contexts/demo/events", hello},
		{http.MethodPost, "/contexts/demo/interrupt", ""},
		{http.MethodDelete, "/contexts/demo", ""},
	} {
		t.Run(test.method+" "+test.path, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newSlowList(100*time.Millisecond, summaries(3)...)
				g := gateway.New(c, gateway.Options{Rate: -1})
				do := func() {
					require.Equal(t, http.StatusAccepted, ask(t.Context(), g, test.method, test.path, test.body).Code)
				}
				list := func() { require.Equal(t, http.StatusOK, ask(t.Context(), g, http.MethodGet, "/contexts", "").Code) }
				list()
				do()
				list()
				require.EqualValues(t, 2, c.reads.Load(), "a cached list was used")

				do()
				before := make(chan struct{})
				go func() {
					defer close(before)
					list()
				}()
				time.Sleep(150 * time.Millisecond) // bubble time: the rate limit delays the read by 100 ms
				require.EqualValues(t, 3, c.reads.Load(), "the read has started")
				do()
				list()
				<-before
				require.EqualValues(t, 4, c.reads.Load(), "a read from before the change was used")
				list()
				require.EqualValues(t, 4, c.reads.Load(), "the new list is cached")
			})
		})
	}
}

func TestListReadsAreLimitedToFivePerSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newSlowList(0, summaries(3)...)
		g := gateway.New(c, gateway.Options{Rate: -1})
		began := time.Now()
		for range 21 {
			ask(t.Context(), g, http.MethodPost, "/contexts/demo/events", hello)
			ask(t.Context(), g, http.MethodGet, "/contexts", "")
		}
		require.EqualValues(t, 21, c.reads.Load())
		require.Equal(t, 4*time.Second, time.Since(began))
	})
}

func TestAFailedListIsNotCached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newSlowList(0)
		c.err = client.ErrUnreachable
		g := gateway.New(c, gateway.Options{Rate: -1})
		for n := range int32(2) {
			require.Equal(t, http.StatusServiceUnavailable, ask(t.Context(), g, http.MethodGet, "/contexts", "").Code)
			require.Equal(t, n+1, c.reads.Load())
		}
	})
}

func TestTheListReportsAnOutageAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newSlowList(10*time.Second, summaries(3)...) // as long as the SDK retries
		c.pingErr = client.ErrUnreachable
		g := gateway.New(c, gateway.Options{Rate: -1})
		began := time.Now()
		got := ask(t.Context(), g, http.MethodGet, "/contexts", "")
		require.Equal(t, http.StatusServiceUnavailable, got.Code)
		require.Contains(t, got.Body.String(), "Temporal is unreachable")
		require.Zero(t, time.Since(began))
	})
}

func TestPagesReadOnlyTheNeededPartOfALongList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 100_000
		c := newSlowList(0, summaries(n)...)
		g := gateway.New(c, gateway.Options{Rate: -1})
		pages, seen := 0, 0
		for next := "/contexts?limit=100"; next != "" && pages < 12; pages++ {
			var page struct {
				Contexts []client.Summary
				Next     string
			}
			require.NoError(t, json.Unmarshal(ask(t.Context(), g, http.MethodGet, next, "").Body.Bytes(), &page))
			for _, s := range page.Contexts {
				require.Equal(t, c.list[seen].ContextName, s.ContextName)
				seen++
			}
			next = page.Next
			if seen < 1000 {
				require.EqualValues(t, 1000, c.contextsRead.Load(), "contexts read for page %d", pages)
			}
		}
		require.EqualValues(t, 1+3, c.reads.Load(), "one read of the head, then one per page beyond it")
		require.Equal(t, 1200, seen)
		require.Contains(t, ask(t.Context(), g, http.MethodGet, "/contexts?q=demo-99999", "").Body.String(), "demo-99999")
	})
}

func TestContextsAreSearchedAndPaged(t *testing.T) {
	at := func(second int) time.Time { return time.Date(2026, 1, 2, 15, 4, second, 0, time.UTC) }
	w := serve(t, fakeClient{log: newLog(), list: []client.Summary{
		{ContextName: "newest", Status: wire.StatusAnswering, StartedAt: at(9)},
		{ContextName: "Demo-3", Status: wire.StatusIdle, StartedAt: at(5)},
		{ContextName: "demo-1", Status: wire.StatusIdle, StartedAt: at(5)},
		{ContextName: "demo-0", StartedAt: at(4)},
		// Closed contexts follow, latest end first.
		{ContextName: "demo-5", Status: wire.StatusClosed, StartedAt: at(8), ClosedAt: at(9)},
		{ContextName: "demo-2", Status: wire.StatusClosed, StartedAt: at(3), ClosedAt: at(7)},
		{ContextName: "demo-6", Status: wire.StatusClosed, StartedAt: at(5), ClosedAt: at(6)},
	}}, gateway.Options{})
	for query, want := range map[string][]string{
		"":                        {"newest", "Demo-3", "demo-1", "demo-0", "demo-5", "demo-2", "demo-6"},
		"q=DEMO":                  {"Demo-3", "demo-1", "demo-0", "demo-5", "demo-2", "demo-6"},
		"status=idle":             {"Demo-3", "demo-1"},
		"status=closed&q=demo":    {"demo-5", "demo-2", "demo-6"},
		"q=emo&status=idle&x=ign": {"Demo-3", "demo-1"},
		"q=nothing":               nil,
	} {
		for _, size := range []int{1, 2, 100} {
			var found []string
			pages := 0
			for next := fmt.Sprintf("/contexts?limit=%d&%s", size, query); next != ""; pages++ {
				got := w.do(http.MethodGet, next, "")
				require.Equal(t, http.StatusOK, got.status, got.body)
				var page struct {
					Contexts []client.Summary
					Next     string
				}
				require.NoError(t, json.Unmarshal([]byte(got.body), &page))
				for _, s := range page.Contexts {
					found = append(found, s.ContextName)
				}
				next = page.Next
			}
			require.Equal(t, want, found, query)
			require.Equal(t, max(1, (len(want)+size-1)/size), pages, query)
		}
	}
	for _, query := range []string{"status=busy", "limit=-1", "from=junk"} {
		require.Equal(t, http.StatusBadRequest, w.do(http.MethodGet, "/contexts?"+query, "").status, query)
	}
}

// Reads of one tenant do not delay those of another, however many wait.
func TestATenantDoesNotDelayTheListsOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gateway.New(eachTenant{"acme": {log: newLog()}, "other": {log: newLog()}}, gateway.Options{Rate: -1, Auth: claims{}})
		defer g.Close()
		var others sync.WaitGroup
		defer others.Wait()
		for range 100 {
			others.Go(func() { ask(t.Context(), g, http.MethodGet, "/contexts", "", by("other", auth.RoleRead)...) })
			synctest.Wait()
			require.Equal(t, http.StatusAccepted, ask(t.Context(), g, http.MethodPost, "/contexts/demo/interrupt", "", by("other", auth.RoleWrite)...).Code)
		}
		began := time.Now()
		require.Equal(t, http.StatusOK, ask(t.Context(), g, http.MethodGet, "/contexts", "", by("acme", auth.RoleRead)...).Code)
		require.Less(t, time.Since(began), time.Second)
	})
}
