package e2e

import (
	"net/http/httptest"
	"strings"
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

func (w *world) servePage(c *client.Context) (url string, proxy *lossyProxy) {
	w.t.Helper()
	g := gateway.New(w.client, gateway.Options{Page: page.Handler(), Linger: testTimeout})
	server := httptest.NewServer(g)
	w.t.Cleanup(func() {
		g.Close()
		server.CloseClientConnections()
		server.Close()
	})
	proxy = newLossyProxy(w.t, server.Listener.Addr().String(), "", true)
	return "http://" + proxy.address() + "/#" + c.Name(), proxy
}

// openURL opens a page. Tests start the browser before the world, so that they are skipped early without a browser.
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

func TestAPersonTalksOnThePage(t *testing.T) {
	browser := browsertest.Start(t)
	first, second, third := llmtest.NewGate(), llmtest.NewGate(), llmtest.NewGate()
	w := newWorld(t,
		llmtest.Answer("Hel", "lo ", "**there**").HoldAfter(2, first), llmtest.Answer("Bye"),
		llmtest.Answer("One ", "never").HoldAfter(1, second), llmtest.Answer("Two ", "never").HoldAfter(1, third))
	w.worker()
	c := w.open("demo")
	url, _ := w.servePage(c)
	tab := openURL(browser, url)
	require.Equal(t, []string{"No messages yet."}, tab.Text("#empty"))
	tab.Type("#text", "Hi\r")
	awaitStreaming(tab, "Hello")
	tab.Await(`!document.querySelector("#stop").hidden`)
	tab.Reload()
	awaitStreaming(tab, "Hello")
	first.Open()
	awaitAnswer(tab, "Hello there")
	tab.Await(`document.querySelector(".prose strong").textContent === "there"`)
	tab.Type("#text", "Thanks\r")
	awaitAnswer(tab, "Bye")
	tab.Await(`document.querySelector("#list a[aria-current]").hash === location.hash`)
	for i, stop := range []func(){
		func() { tab.Click("#stop") },
		func() { tab.Press(kb.Escape) },
	} {
		tab.Type("#text", "Count\r")
		awaitStreaming(tab, []string{"One", "Two"}[i])
		tab.Await(`!document.querySelector("#stop").hidden`)
		stop()
		require.NoError(t, w.model.Aborted(w.ctx, i+3))
		awaitAnswer(tab, []string{"One", "Two"}[i])
		tab.Await(`document.querySelectorAll(".partial").length === ` + []string{"1", "2"}[i])
		tab.Await(`document.querySelector("#stop").hidden`)
	}
	require.Equal(t, "user: Hi\nassistant: Hello there\nuser: Thanks\nassistant: Bye\n"+
		"user: Count\nassistant: One\nuser: Count\nassistant: Two", messages(tab))
}

func TestThePageRecoversFromAConnectionLoss(t *testing.T) {
	browser := browsertest.Start(t)
	first, second, third := llmtest.NewGate(), llmtest.NewGate(), llmtest.NewGate()
	w := newWorld(t, llmtest.Answer("one ", "two ", "three").HoldAfter(1, first), llmtest.Answer("four ", "five").HoldAfter(1, second),
		llmtest.Answer("six ", "seven").HoldAfter(1, third))
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
	w.await(c, isTag(event.TagLLMRequestCompleted))
	tab.Type("#text", "Go on\r")
	tab.Await(`document.querySelector("#outbox .retrying")`)
	proxy.restore()
	awaitStreaming(tab, "four")
	second.Open()
	awaitAnswer(tab, "four five")
	tab.Await(`document.querySelector("#banner").hidden && !document.querySelector("#outbox li")`)
	require.Equal(t, "user: Count\nassistant: one two three\nuser: Go on\nassistant: four five", messages(tab))
	tab.Await(`document.querySelector(".user-message").isOld`)

	// Another gateway continues the stream.
	tab.Type("#text", "And on\r")
	awaitStreaming(tab, "six")
	proxy.cut()
	_, other := w.servePage(c)
	proxy.redirect(other.to)
	third.Open()
	awaitAnswer(tab, "six seven")
	require.Equal(t, 3, strings.Count(messages(tab), "user: "))
	require.Equal(t, 3, strings.Count(w.log(c), "UserMessage"))
}
