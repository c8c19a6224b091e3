package e2e

import (
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
	"github.com/seed-9ed7edd4/chronicle/gateway/page"
	"github.com/seed-9ed7edd4/chronicle/internal/browsertest"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
)

func (w *world) servePage(c *client.Context) (url string, proxy *cutProxy) {
	w.t.Helper()
	g := gateway.New(w.client, gateway.Options{Page: page.Handler(), Linger: testTimeout})
	server := httptest.NewServer(g)
	w.t.Cleanup(func() {
		g.Close()
		server.CloseClientConnections()
		server.Close()
	})
	proxy = newCutProxy(w.t, server.Listener.Addr().String())
	return "http://" + proxy.listener.Addr().String() + "/#" + c.Name(), proxy
}

// openPage opens the page of a context. Tests start the browser before the world, so that
// they are skipped early without a browser.
func (w *world) openPage(browser *browsertest.Browser, c *client.Context) *browsertest.Tab {
	w.t.Helper()
	url, _ := w.servePage(c)
	return openURL(browser, url)
}

func openURL(browser *browsertest.Browser, url string) *browsertest.Tab {
	tab := browser.Open(url)
	tab.Await(`document.querySelector(".entry") || !document.querySelector("#empty").hidden`)
	return tab
}

func messages(tab *browsertest.Tab) string {
	var lines []string
	tab.Eval(`[...document.querySelectorAll(":is(.user-message, .assistant-message)")].map((e) =>
		(e.matches(".user-message") ? "user: " : "assistant: ") + e.querySelector(".bubble, .prose").innerText.trim())`, &lines)
	return strings.Join(lines, "\n")
}

func awaitAnswer(tab *browsertest.Tab, text string) {
	tab.Await(`[...document.querySelectorAll(".assistant-message:not(.streaming) .prose")].some((e) => e.innerText.trim() === "` + text + `")`)
}

func awaitStreaming(tab *browsertest.Tab, text string) {
	tab.Await(`document.querySelector(".assistant-message.streaming .prose")?.innerText.trim() === "` + text + `"`)
}

// cutProxy forwards connections to a server unless it is cut.
type cutProxy struct {
	listener net.Listener
	to       string

	mu    sync.Mutex
	isCut bool
	open  map[net.Conn]bool
}

func newCutProxy(t *testing.T, to string) *cutProxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	c := &cutProxy{listener: listener, to: to, open: map[net.Conn]bool{}}
	t.Cleanup(func() {
		_ = listener.Close()
		c.cut()
	})
	go func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			go c.forward(in)
		}
	}()
	return c
}

func (c *cutProxy) forward(in net.Conn) {
	defer in.Close()
	c.mu.Lock()
	c.open[in] = true
	to, isCut := c.to, c.isCut
	c.mu.Unlock()
	if isCut {
		return
	}
	out, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer out.Close()
	go func() {
		_, _ = io.Copy(out, in)
		_ = out.Close()
	}()
	_, _ = io.Copy(in, out)
}

func (c *cutProxy) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isCut = true
	for in := range c.open {
		_ = in.Close()
		delete(c.open, in)
	}
}

func (c *cutProxy) restore() { c.redirect(c.to) }

func (c *cutProxy) redirect(to string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.to, c.isCut = to, false
}

func TestThePageStreamsTheAnswerToATypedMessage(t *testing.T) {
	browser := browsertest.Start(t)
	gate := llmtest.NewGate()
	w := newWorld(t, llmtest.Answer("Hel", "lo ", "**there**").HoldAfter(2, gate), llmtest.Answer("Bye"))
	w.worker()
	c := w.open("demo")
	tab := w.openPage(browser, c)
	require.Equal(t, []string{"No messages yet."}, tab.Text("#empty"))
	tab.Type("#text", "Hi\r")
	awaitStreaming(tab, "Hello")
	tab.Await(`!document.querySelector("#stop").hidden`)
	gate.Open()
	awaitAnswer(tab, "Hello there")
	tab.Await(`document.querySelector(".prose strong").textContent === "there"`)
	tab.Type("#text", "Thanks\r")
	awaitAnswer(tab, "Bye")
	require.Equal(t, "user: Hi\nassistant: Hello there\nuser: Thanks\nassistant: Bye", messages(tab))
	tab.Await(`document.querySelector("#list a[aria-current] .name").textContent === document.querySelector("#name").textContent`)
}

func TestTheStopButtonAndEscapeStopTheAnswer(t *testing.T) {
	browser := browsertest.Start(t)
	first, second := llmtest.NewGate(), llmtest.NewGate()
	w := newWorld(t, llmtest.Answer("One ", "never").HoldAfter(1, first), llmtest.Answer("Two ", "never").HoldAfter(1, second))
	w.worker()
	c := w.open("demo")
	tab := w.openPage(browser, c)
	for i, stop := range []func(){
		func() { tab.Click("#stop") },
		func() { tab.Press(kb.Escape) },
	} {
		tab.Type("#text", "Count\r")
		awaitStreaming(tab, []string{"One", "Two"}[i])
		tab.Await(`!document.querySelector("#stop").hidden`)
		stop()
		require.NoError(t, w.model.Aborted(w.ctx, i+1))
		awaitAnswer(tab, []string{"One", "Two"}[i])
		tab.Await(`document.querySelectorAll(".partial").length === ` + []string{"1", "2"}[i])
		tab.Await(`document.querySelector("#stop").hidden`)
	}
	require.Equal(t, "user: Count\nassistant: One\nuser: Count\nassistant: Two", messages(tab))
}

func TestAReloadedPageContinuesTheStream(t *testing.T) {
	browser := browsertest.Start(t)
	gate := llmtest.NewGate()
	w := newWorld(t, llmtest.Answer("one ", "two ", "three").HoldAfter(2, gate))
	w.worker()
	tab := w.openPage(browser, w.open("demo"))
	tab.Type("#text", "Count\r")
	awaitStreaming(tab, "one two")
	tab.Reload()
	awaitStreaming(tab, "one two")
	gate.Open()
	awaitAnswer(tab, "one two three")
	require.Equal(t, "user: Count\nassistant: one two three", messages(tab))
}

func TestThePageRecoversFromAConnectionLoss(t *testing.T) {
	browser := browsertest.Start(t)
	first, second := llmtest.NewGate(), llmtest.NewGate()
	w := newWorld(t, llmtest.Answer("one ", "two ", "three").HoldAfter(1, first), llmtest.Answer("four ", "five").HoldAfter(1, second))
	w.worker()
	c := w.open("demo")
	url, proxy := w.servePage(c)
	tab := openURL(browser, url)
	tab.Type("#text", "Count\r")
	awaitStreaming(tab, "one")
	tab.Do(`document.querySelector(".user-message").isOld = true`)

	proxy.cut()
	tab.Await(`document.querySelector("#banner").innerText.includes("Retrying")`)
	first.Open()
	w.await(c, func(e event.Event) bool { return e.Tag() == event.TagLLMRequestCompleted })
	tab.Type("#text", "Go on\r")
	tab.Await(`document.querySelector("#outbox .retrying")`)
	proxy.restore()
	awaitStreaming(tab, "four")
	second.Open()
	awaitAnswer(tab, "four five")
	tab.Await(`document.querySelector("#banner").hidden && !document.querySelector("#outbox li")`)
	require.Equal(t, "user: Count\nassistant: one two three\nuser: Go on\nassistant: four five", messages(tab))
	tab.Await(`document.querySelector(".user-message").isOld`)
	require.Equal(t, 2, strings.Count(w.log(c), "UserMessage"))
}

func TestThePageContinuesWithAnotherGateway(t *testing.T) {
	browser := browsertest.Start(t)
	gate := llmtest.NewGate()
	w := newWorld(t, llmtest.Answer("one ", "two").HoldAfter(1, gate))
	w.worker()
	c := w.open("demo")
	url, proxy := w.servePage(c)
	tab := openURL(browser, url)
	tab.Type("#text", "Count\r")
	awaitStreaming(tab, "one")
	proxy.cut()
	_, other := w.servePage(c)
	proxy.redirect(other.to)
	gate.Open()
	awaitAnswer(tab, "one two")
	require.Equal(t, "user: Count\nassistant: one two", messages(tab))
}
