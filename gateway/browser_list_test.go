package gateway_test

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
	"github.com/seed-9ed7edd4/chronicle/gateway/page"
	"github.com/seed-9ed7edd4/chronicle/internal/browsertest"
	"github.com/seed-9ed7edd4/chronicle/internal/clienttest"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// shelf is a client with several contexts.
type shelf struct {
	fakeClient
	logs    map[string]*log
	list    []client.Summary
	changed func(name string) // set by Watch
	mu      sync.Mutex
}

func (s *shelf) Tenant(string) (*shelf, error) { return s, nil }

// add creates a context whose events have the given age. A message to it is recorded.
func (s *shelf) add(name string, age time.Duration, bodies ...event.Body) *log {
	at := time.Now().Add(-age)
	l := &log{Log: clienttest.NewLog(name, func(int) time.Time { return at }), changed: make(chan struct{})}
	l.record(bodies...)
	s.logs[name] = l
	s.list = append(s.list, client.Summary{ContextName: name, Status: wire.StatusIdle, Model: "gpt-4o-mini", StartedAt: at})
	return l
}

func (s *shelf) Open(name string) (*log, error) {
	if l, ok := s.logs[name]; ok {
		return l, nil
	}
	return newLogOf(name), nil
}

func (s *shelf) List(context.Context, string) iter.Seq2[client.Summary, error] {
	return func(yield func(client.Summary, error) bool) {
		for _, summary := range s.list {
			if !yield(summary, nil) {
				return
			}
		}
	}
}

func (s *shelf) Summary(_ context.Context, name string) (client.Summary, error) {
	for _, summary := range s.list {
		if summary.ContextName == name {
			return summary, nil
		}
	}
	return client.Summary{}, client.ErrNoContext
}

func (s *shelf) Events(ctx context.Context, name, from string) iter.Seq2[event.Event, error] {
	l, _ := s.Open(name)
	return l.Log.Events(ctx, from)
}

func (s *shelf) Watch(_ context.Context, changed func(string)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed = changed
	return nil
}

func (s *shelf) show(t *testing.T, place string) *browsertest.Tab {
	t.Helper()
	browser := browsertest.Start(t)
	w := serve(t, s, gateway.Options{Page: page.Handler()})
	return browser.Open(w.server.URL + "/" + place)
}

const names = `[...document.querySelectorAll("#list .name")].map((e) => e.textContent).join()`

func TestConversationsAreFoundTitledAndArchived(t *testing.T) {
	s := &shelf{logs: map[string]*log{}}
	s.add("chat-1", 3*time.Hour, event.UserMessage{Content: "Name a river."}, event.AssistantMessage{Content: "The Rhine."})
	backup := s.add("chat-2", time.Minute, event.UserMessage{Content: "Why did the nightly backup fail?"}, event.AssistantMessage{Content: "The <b>volume</b> was full."})
	long := s.add("long", 48*time.Hour, event.UserMessage{Content: "Find the needle"})
	for i := range 400 {
		long.record(event.AssistantMessage{Content: fmt.Sprintf("Hay %d", i)}, event.UserMessage{Content: "More"})
	}
	tab := s.show(t, "#chat-1")
	tab.Await(names + ` === "Why did the nightly backup fail?,Name a river.,Find the needle"`)
	require.Equal(t, "chat-1 · gpt-4o-mini", tab.Text("#list .details")[1])

	tab.Run("a message is found and marked", func(t *testing.T) {
		tab.Do(`document.activeElement.blur()`)
		tab.Press("/volu")
		tab.Await(`document.querySelectorAll("#hits a").length === 1 && document.querySelector("#list-note").innerText === "No matching contexts."`)
		require.Equal(t, []string{"volume"}, tab.Text("#hits mark"))
		require.Contains(t, tab.Text("#hits .fragment")[0], "The <b>volume</b> was full.")
		if *screenshots {
			tab.As(browsertest.Look{Width: 1000, Height: 620})
			screenshot(tab, "search")
		}
		tab.Press(kb.Enter)
		tab.Await(`location.hash === "#chat-2:0002" && document.querySelector(".marked")?.innerText.includes("was full")`)
		tab.Type("#search", kb.Escape)
		tab.Await(names + `.includes("river") && document.querySelector("#found").hidden`)
	})
	tab.Run("only the list of hits scrolls", func(t *testing.T) {
		tab.Type("#search", "more")
		tab.Await(`document.querySelectorAll("#hits a").length === 20 && rows.scrollHeight > rows.clientHeight`)
		var below int
		tab.Eval(`document.documentElement.scrollHeight - innerHeight`, &below)
		require.LessOrEqual(t, below, 0)
		tab.Press(kb.Escape)
		tab.Await(names + `.includes("river")`)
	})
	tab.Run("a message far above is shown", func(t *testing.T) {
		tab.Do(`document.querySelector("#search").value = ""`)
		tab.Type("#search", "needle")
		tab.Await(`document.querySelector("#hits a")?.hash === "#long:0001"`)
		tab.Press(kb.ArrowDown + kb.ArrowDown + kb.Enter)
		tab.Await(`(() => { const { top, bottom } = document.querySelector(".marked").getBoundingClientRect(); return top > 0 && bottom < innerHeight && document.querySelector("#scroller").scrollTop < 500 })()`)
		tab.Click("#newest")
		tab.Await(`document.querySelector("#newest").hidden`)
	})
	tab.Run("a title and labels are set", func(t *testing.T) {
		tab.Do(`location.hash = "#chat-2"; search.value = ""; search.dispatchEvent(new Event("input"))`)
		tab.Await(`document.querySelector("#name").textContent === "Why did the nightly backup fail?" && document.querySelector("#address").textContent === "chat-2" && !document.querySelector(".marked")`)
		tab.Click("#menu-button")
		tab.Click("#rename")
		tab.Type("#labels", "team")
		tab.Click("#details [value=save]")
		tab.Await(`document.querySelector("#details [role=alert]").innerText.includes("name=value")`)
		tab.Type("#labels", "=ops")
		tab.Type("#title", "Backups\r")
		tab.Await(`!details.open && document.querySelector("#name").textContent === "Backups" && document.querySelector("#address").textContent === "chat-2"`)
		require.Equal(t, event.Body(event.SetDetails{Title: new("Backups"), Labels: map[string]string{"team": "ops"}}), last(backup))
		tab.Await(names + `.startsWith("Backups,") && document.querySelector("#list .details").textContent === "chat-2 · gpt-4o-mini · team=ops"`)
		require.Equal(t, "Why did the nightly backup fail?", tab.Text("#list .preview")[0])
	})
	tab.Run("a label selects contexts and messages", func(t *testing.T) {
		tab.Await(`[...label.options].map((o) => o.text).join() === "All labels,team=ops"`)
		tab.Type("#label", "team")
		tab.Await(names + ` === "Backups"`)
		tab.Type("#search", "river")
		tab.Await(`document.querySelector("#list-note").innerText === "No matching contexts."`)
		tab.Type("#search", kb.Escape+"more")
		tab.Await(`performance.getEntriesByType("resource").some((e) => e.name.endsWith("/search?q=more&limit=20&label=team%3Dops"))`)
		tab.Type("#search", kb.Escape)
		tab.Type("#label", "All")
		tab.Await(names + ` === "Backups,Name a river.,Find the needle"`)
	})
	tab.Run("a context is archived and back", func(t *testing.T) {
		tab.Click("#menu-button")
		tab.Click("#archive")
		tab.Await(names + ` === "Name a river.,Find the needle"`)
		tab.Reload()
		tab.Await(names + ` === "Name a river.,Find the needle" && document.querySelector("#archive").textContent === "Unarchive" && document.querySelector("#name").textContent === "Backups"`)
		tab.Click("#archived")
		tab.Await(names + ` === "Backups"`)
		tab.Click("#menu-button")
		tab.Click("#archive")
		tab.Await(`document.querySelector("#list-note").innerText === "Nothing is archived."`)
		tab.Click("#archived")
		tab.Await(names + ` === "Backups,Name a river.,Find the needle"`)
	})
}

func TestContextsAreListedByDayAndRenamedFromTheList(t *testing.T) {
	s := &shelf{logs: map[string]*log{}}
	hour := time.Duration(time.Now().Hour()) * time.Hour
	for name, age := range map[string]time.Duration{"a": 0, "b": time.Second, "c": hour + 12*time.Hour, "d": hour + 60*time.Hour, "e": hour + 20*24*time.Hour} {
		s.add(name, age, event.UserMessage{Content: "Message of " + name})
	}
	tab := s.show(t, "")
	tab.Await(`document.querySelectorAll("#list a").length === 5`)
	require.Equal(t, []string{"Today", "", "Yesterday", "Previous 7 days", "Previous 30 days"}, each(tab, "#list > li", "e.dataset.period"))
	tab.Click(`#list a[href="#b"]`)
	tab.Await(`document.querySelector("#name").textContent === "Message of b" && document.title === "Message of b · Chronicle"`)
	tab.Do(`document.querySelector('#list a[href="#b"]').dispatchEvent(new MouseEvent("dblclick", { bubbles: true }))`)
	tab.Await(`details.open && document.querySelector("#title").placeholder === "Message of b"`)
	tab.Press(kb.Escape)
	tab.Await(`!details.open`)
	tab.Type("#text", kb.F2)
	tab.Await(`details.open`)
	tab.Type("#title", "Renamed\r")
	tab.Await(names + `.includes("Renamed") && document.title === "Renamed · Chronicle"`)
	require.Equal(t, event.Body(event.SetDetails{Title: new("Renamed")}), last(s.logs["b"]))
}

func TestFiveThousandContextsAreListed(t *testing.T) {
	const count = 5000
	s := &shelf{logs: map[string]*log{}}
	for i := range count {
		s.list = append(s.list, client.Summary{ContextName: fmt.Sprintf("c%04d", i), Status: wire.StatusIdle, StartedAt: time.Now().Add(-time.Duration(i) * time.Minute)})
	}
	tab := s.show(t, "")
	tab.Await(`document.querySelectorAll("#list a").length >= 100`)
	tab.Do(`
		window.slowest = 0;
		new PerformanceObserver((list) => list.getEntries().forEach((e) => { slowest = Math.max(slowest, e.duration) })).observe({ type: "longtask" });
		const rows = document.querySelector("#rows");
		rows.addEventListener("scroll", () => {});
		window.down = setInterval(() => { rows.scrollTop = rows.scrollHeight }, 5)`)
	tab.Await(fmt.Sprintf(`document.querySelectorAll("#list a").length === %d`, count))
	var got []string
	tab.Eval(`[...document.querySelectorAll("#list a")].map((a) => a.hash.slice(2))`, &got)
	require.True(t, slices.IsSorted(got), "each context once, in order")
	var slowest float64
	tab.Do(`clearInterval(window.down); await new Promise((done) => setTimeout(done, 2100))`) // a refresh
	tab.Eval(`slowest`, &slowest)
	t.Logf("the slowest task took %.0f ms", slowest)
}

func TestThePageFollowsLinksBelowAPath(t *testing.T) {
	browser := browsertest.Start(t)
	var list []client.Summary
	for i := range 150 {
		list = append(list, client.Summary{ContextName: fmt.Sprintf("context-%03d", i)})
	}
	for _, path := range []string{"", "/chat"} { // "": the operator did not set it
		w := serve(t, fakeClient{log: newLog(event.UserMessage{Content: "Hello"}), list: list}, gateway.Options{Page: page.Handler(), PublicPath: path})
		proxy := httptest.NewServer(http.StripPrefix("/chat", w.gateway))
		t.Cleanup(func() {
			proxy.CloseClientConnections()
			proxy.Close()
		})
		tab := browser.Open(proxy.URL + "/chat/#demo")
		tab.Await(`document.querySelectorAll("#list > li").length >= 100`)
		tab.Do(`document.querySelector("#rows").scrollTo(0, 1e6)`)
		tab.Await(`document.querySelectorAll("#list > li").length === 150`)
	}
}
