package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
	"github.com/seed-9ed7edd4/chronicle/gateway/auth"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// slowList is a client with a slow list that counts reads.
type slowList struct {
	fakeClient
	delay   time.Duration
	reads   *atomic.Int32
	pingErr error // the result of Ping
	changed chan func(string)
}

func newSlowList(delay time.Duration, list ...client.Summary) slowList {
	return slowList{fakeClient: fakeClient{log: newLog(), list: list}, delay: delay, reads: new(atomic.Int32), changed: make(chan func(string), 1)}
}

func (c slowList) Tenant(string) (slowList, error) { return c, nil }

func (c slowList) Ping(context.Context) error { return c.pingErr }

func (c slowList) Watch(_ context.Context, changed func(string)) error {
	c.changed <- changed
	return nil
}

func (c slowList) List(ctx context.Context, query string) iter.Seq2[client.Summary, error] {
	return func(yield func(client.Summary, error) bool) {
		c.reads.Add(1)
		select {
		case <-time.After(c.delay):
		case <-ctx.Done():
			yield(client.Summary{}, ctx.Err())
			return
		}
		c.fakeClient.List(ctx, query)(yield)
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

// listed returns the names on all pages of a list.
func listed(t *testing.T, g *gateway.Gateway, path string, header ...string) (names []string) {
	t.Helper()
	for next := path; next != ""; {
		got := ask(t.Context(), g, http.MethodGet, next, "", header...)
		require.Equal(t, http.StatusOK, got.Code, got.Body)
		var page struct {
			Contexts []client.Summary
			Next     string
		}
		require.NoError(t, json.Unmarshal(got.Body.Bytes(), &page))
		for _, s := range page.Contexts {
			names = append(names, s.ContextName)
		}
		next = page.Next
	}
	return names
}

// Open pages read the list every two seconds.
func TestAListCostsTemporalTheSameForAnyNumberOfRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newSlowList(100*time.Millisecond, summaries(3)...)
		g := gateway.New(c, gateway.Options{Rate: -1})
		defer g.Close()
		for range 100 {
			go func() {
				got := ask(t.Context(), g, http.MethodGet, "/contexts", "")
				if got.Code != http.StatusOK || !strings.Contains(got.Body.String(), "demo-2") {
					t.Error(got.Body)
				}
			}()
		}
		time.Sleep(time.Second) // bubble time
		require.EqualValues(t, 1, c.reads.Load())
		for range 60 {
			require.Len(t, listed(t, g, "/contexts"), 3)
			time.Sleep(time.Second) // bubble time
		}
		require.LessOrEqual(t, c.reads.Load(), int32(13))
	})
}

func TestADisconnectDoesNotEndTheReadOfAList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newSlowList(100*time.Millisecond, summaries(3)...)
		g := gateway.New(c, gateway.Options{Rate: -1})
		defer g.Close()
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

func TestTheListFollowsNotices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newSlowList(0, client.Summary{ContextName: "demo", StartedAt: time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)}, client.Summary{ContextName: "other", StartedAt: time.Date(2026, 1, 2, 1, 0, 0, 0, time.UTC)})
		g := gateway.New(c, gateway.Options{Rate: -1})
		defer g.Close()
		require.Equal(t, []string{"other", "demo"}, listed(t, g, "/contexts"))
		c.log.record(event.UserMessage{Content: "Hello"}) // at 15:04
		(<-c.changed)("demo")
		time.Sleep(time.Second) // bubble time
		require.Equal(t, []string{"demo", "other"}, listed(t, g, "/contexts"))
		require.EqualValues(t, 1, c.reads.Load())
	})
}

func TestChangesThroughTheGatewayAreListed(t *testing.T) {
	for _, test := range []struct{ method, path, body string }{
		{http.MethodPost, "/contexts/demo/events", hello},
		{http.MethodPost, "/contexts/demo/interrupt", ""},
		{http.MethodDelete, "/contexts/demo", ""},
	} {
		t.Run(test.method+" "+test.path, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				other := client.Summary{ContextName: "other", StartedAt: time.Date(2026, 1, 2, 1, 0, 0, 0, time.UTC)}
				c := newSlowList(0, client.Summary{ContextName: "demo", StartedAt: other.StartedAt.Add(-time.Second)}, other)
				g := gateway.New(c, gateway.Options{Rate: -1})
				defer g.Close()
				require.Equal(t, []string{"other", "demo"}, listed(t, g, "/contexts"))
				c.log.record(event.UserMessage{Content: "Hello"}) // at 15:04
				require.Equal(t, http.StatusAccepted, ask(t.Context(), g, test.method, test.path, test.body).Code)
				time.Sleep(time.Second) // bubble time
				require.Equal(t, []string{"demo", "other"}, listed(t, g, "/contexts"))
				require.EqualValues(t, 1, c.reads.Load(), "of the list of Temporal")
			})
		})
	}
}

func TestTheListIsReadAgainAfterAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newSlowList(0, summaries(3)...)
		c.err = client.ErrUnreachable
		g := gateway.New(c, gateway.Options{Rate: -1})
		defer g.Close()
		began := time.Now()
		require.Equal(t, http.StatusGatewayTimeout, ask(t.Context(), g, http.MethodGet, "/contexts", "").Code)
		require.Equal(t, 30*time.Second, time.Since(began))
		require.Greater(t, c.reads.Load(), int32(20))
	})
}

func TestListsAndSearchesReportAnOutageAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newSlowList(10*time.Second, summaries(3)...) // as long as the SDK retries
		c.pingErr = client.ErrUnreachable
		g := gateway.New(c, gateway.Options{Rate: -1})
		defer g.Close()
		began := time.Now()
		for _, path := range []string{"/contexts", "/search?q=hello"} {
			got := ask(t.Context(), g, http.MethodGet, path, "")
			require.Equal(t, http.StatusServiceUnavailable, got.Code)
			require.Contains(t, got.Body.String(), "Temporal is unreachable")
		}
		require.Zero(t, time.Since(began))
	})
}

func TestAListOfManyContextsIsPaged(t *testing.T) {
	const n = 20_000
	list := summaries(n)
	w := serve(t, fakeClient{log: newLog(), list: list}, gateway.Options{})
	names := listed(t, w.gateway, "/contexts?limit=1000")
	require.Len(t, names, n)
	for i, name := range names {
		require.Equal(t, list[i].ContextName, name)
	}
	require.Equal(t, []string{"demo-19999"}, listed(t, w.gateway, "/contexts?q=demo-19999"))
}

func TestContextsAreFilteredAndPaged(t *testing.T) {
	at := func(second int) time.Time { return time.Date(2026, 1, 2, 15, 4, second, 0, time.UTC) }
	w := serve(t, fakeClient{log: newLog(), list: []client.Summary{
		{ContextName: "newest", Status: wire.StatusAnswering, StartedAt: at(9)},
		{ContextName: "demo-1", Status: wire.StatusIdle, StartedAt: at(5)},
		{ContextName: "Demo-3", Status: wire.StatusIdle, StartedAt: at(5)},
		{ContextName: "demo-0", StartedAt: at(4)},
		{ContextName: "demo-5", Status: wire.StatusClosed, StartedAt: at(7), ClosedAt: at(8)},
		{ContextName: "demo-2", Status: wire.StatusClosed, StartedAt: at(3), ClosedAt: at(7)},
	}}, gateway.Options{})
	for query, want := range map[string][]string{
		"":                        {"newest", "demo-5", "demo-2", "Demo-3", "demo-1", "demo-0"},
		"q=DEMO":                  {"demo-5", "demo-2", "Demo-3", "demo-1", "demo-0"},
		"status=idle":             {"Demo-3", "demo-1"},
		"status=closed&q=demo":    {"demo-5", "demo-2"},
		"q=emo&status=idle&x=ign": {"Demo-3", "demo-1"},
		"archived=false":          {"newest", "demo-5", "demo-2", "Demo-3", "demo-1", "demo-0"},
		"archived=true":           nil,
		"owner=ann":               nil,
		"label=team%3Dsupport":    nil,
		"q=nothing":               nil,
	} {
		for _, size := range []int{1, 2, 100} {
			require.Equal(t, want, listed(t, w.gateway, fmt.Sprintf("/contexts?limit=%d&%s", size, query)), query)
		}
	}
	for _, query := range []string{"status=busy", "limit=-1", "from=junk", "archived=yes", "label=team"} {
		require.Equal(t, http.StatusBadRequest, w.do(http.MethodGet, "/contexts?"+query, "").status, query)
	}
}

func TestMessagesAreSearched(t *testing.T) {
	l := newLog(event.UserMessage{Content: "Where is the <b>canary</b>?"}, event.AssistantMessage{Content: "The canary is in the mine."})
	for i := range 5 {
		l.record(event.UserMessage{Content: fmt.Sprintf("sparrow number %d", i)})
	}
	w := serve(t, fakeClient{log: l, list: []client.Summary{{ContextName: "demo"}}}, gateway.Options{})
	var page struct {
		Hits []struct {
			ContextName, EventID, Role string
			Timestamp                  time.Time
			Fragments                  []struct {
				Text  string
				Match bool
			}
		}
		Next string
	}
	find := func(path string) {
		t.Helper()
		got := w.do(http.MethodGet, path, "")
		require.Equal(t, http.StatusOK, got.status, got.body)
		page.Hits, page.Next = nil, ""
		require.NoError(t, json.Unmarshal([]byte(got.body), &page))
	}
	for late := time.Now().Add(testTimeout); len(page.Hits) == 0 && time.Now().Before(late); {
		find("/search?q=canary+mine") // the log is read in the background
	}
	require.Len(t, page.Hits, 1)
	hit := page.Hits[0]
	require.Equal(t, "demo demo:0002 assistant", strings.Join([]string{hit.ContextName, hit.EventID, hit.Role}, " "))
	require.Equal(t, "The canary is in the mine.", hit.Fragments[0].Text+hit.Fragments[1].Text+hit.Fragments[2].Text+hit.Fragments[3].Text+hit.Fragments[4].Text)
	find("/search?q=%22is+the%22&context=demo")
	require.Equal(t, "demo:0001", page.Hits[0].EventID)

	seen := map[string]bool{}
	for next := "/search?q=sparr&limit=2"; next != ""; next = page.Next {
		find(next)
		for _, h := range page.Hits {
			seen[h.EventID] = true
		}
	}
	require.Len(t, seen, 5)
	for _, path := range []string{"/search?q=sparrow&context=other", "/search?q=sparrow&label=team%3Dsupport", "/search?q=eagle", "/search?q=sparrow&from=1000"} {
		find(path)
		require.Empty(t, page.Hits, path)
	}
}

func TestInvalidSearchesAreRejected(t *testing.T) {
	w := serve(t, fakeClient{log: newLog()}, gateway.Options{})
	for query, want := range map[string]string{
		"":                               "it has no word",
		"q=":                             "it has no word",
		"q=%22%22+%21+-":                 "it has no word",
		"q=%ff%fe":                       "not UTF-8",
		"q=" + strings.Repeat("a", 401):  "401 bytes (at most 400)",
		"q=" + strings.Repeat("a+", 150): "", // the same word
		"q=" + strings.Join(slices.Collect(func(yield func(string) bool) {
			for i := range 50 {
				if !yield(fmt.Sprint("a", i)) {
					return
				}
			}
		}), "+"): "50 words (at most 24)",
		"q=a&limit=0":    "limit",
		"q=a&from=-1":    "from",
		"q=a&from=junk":  "from",
		"q=a&label=junk": "label",
		// What a query language would understand is words.
		"q=%2Bcontent%3A%2F.*%2F+AND+%28_id%3A*%5E9+OR+a~2%29+%5B%5D%7B%7D%5C": "",
	} {
		got := w.do(http.MethodGet, "/search?"+query, "")
		if want == "" {
			require.Equal(t, http.StatusOK, got.status, query)
			continue
		}
		require.Equal(t, http.StatusBadRequest, got.status, query)
		require.Contains(t, got.body, want, query)
	}
}

// Each tenant has an index of its own.
func TestATenantFindsItsContextsOnly(t *testing.T) {
	c := eachTenant{"acme": {log: newLog(event.UserMessage{Content: "canary"}), list: []client.Summary{{ContextName: "demo"}}}, "other": {log: newLog()}}
	g := gateway.New(c, gateway.Options{Rate: -1, Auth: claims{}, IndexDir: t.TempDir()})
	defer g.Close()
	find := func(tenant string) string {
		got := ask(t.Context(), g, http.MethodGet, "/search?q=canary", "", by(tenant, auth.RoleRead)...)
		require.Equal(t, http.StatusOK, got.Code, got.Body)
		return got.Body.String()
	}
	for late := time.Now().Add(testTimeout); !strings.Contains(find("acme"), "demo:0001"); {
		require.True(t, time.Now().Before(late))
	}
	require.JSONEq(t, `{"hits":[]}`, find("other"))
	require.Equal(t, []string{"demo"}, listed(t, g, "/contexts", by("acme", auth.RoleRead)...))
	require.Empty(t, listed(t, g, "/contexts", by("other", auth.RoleRead)...))
}
