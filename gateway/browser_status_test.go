package gateway_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
	"github.com/seed-9ed7edd4/chronicle/gateway/page"
	"github.com/seed-9ed7edd4/chronicle/internal/browsertest"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

func TestStatus(t *testing.T) {
	l := newLog(event.UserMessage{Content: "Hi"})
	start := func(request string, through int) event.LLMRequestStarted {
		return event.LLMRequestStarted{RequestID: request, ProviderID: "openai", Model: "gpt-4o-mini", Attempt: 1, ThroughEventID: eventID(through)}
	}
	cancelled := func(request string) event.LLMRequestInterrupted {
		return event.LLMRequestInterrupted{RequestID: request, Reason: event.ReasonCancelled}
	}
	tab := show(t, l)
	const idle = `document.querySelector("#status").textContent === "idle" && document.querySelector("#stop").hidden`
	const answering = `document.querySelector("#status").textContent === "answering" && !document.querySelector("#stop").hidden`
	tab.Await(idle)

	tab.Run("an answer can be stopped before its first word, and the list shows the streamed status", func(t *testing.T) {
		const said = `document.querySelector("#list a[aria-current] .details")?.textContent`
		tab.Await(said + ` === "demo · gpt-4o-mini"`)
		l.record(start("demo:r0001", 1))
		tab.Await(answering + " && " + said + ` === "answering · demo · gpt-4o-mini"`)
		var before int
		const lists = `performance.getEntriesByType("resource").filter((e) => e.name.includes("/contexts?")).length`
		tab.Eval(lists, &before)
		tab.Await(fmt.Sprintf(`%s > %d`, lists, before)) // the list still has idle
		require.Equal(t, []string{"answering"}, tab.Text("#status"))
		tab.Await(said + ` === "answering · demo · gpt-4o-mini"`)
		tab.Click("#stop")
		l.await(t, func() bool { return len(l.calls) > 0 })
		l.record(cancelled("demo:r0001"))
		tab.Await(idle + " && " + said + ` === "demo · gpt-4o-mini"`)
	})
	tab.Run("the usage of the budget", func(t *testing.T) {
		require.Equal(t, []string{""}, tab.Text("#budget"))
		l.record(event.BudgetSet{Tokens: new(int64(5000)), CostMicros: new(int64(2_500_000))}, start("demo:r0002", 1),
			event.LLMRequestCompleted{RequestID: "demo:r0002", Usage: event.Usage{InputTokens: 1200, OutputTokens: 34, CostMicros: new(int64(20_000))}})
		tab.Await(`document.querySelector("#budget").textContent === "1,234 of 5,000 tokens · $0.02 of $2.50"`)
		l.record(event.BudgetSet{})
		tab.Await(`document.querySelector("#budget").textContent === ""`)
	})
	tab.Run("the stop button stays between an interrupted answer and the next", func(t *testing.T) {
		l.record(start("demo:r0003", 1))
		tab.Await(answering)
		// The test ends the pause explicitly.
		tab.Do(`
			const { setTimeout, clearTimeout } = window;
			window.setTimeout = (then, ms) => ms < 200 ? (window.pause = then, "pause") : setTimeout(then, ms);
			window.clearTimeout = (timer) => timer === "pause" ? (window.pause = undefined) : clearTimeout(timer)`)
		l.record(event.UserMessage{Content: "No, wait"}, event.LLMRequestInterrupted{RequestID: "demo:r0003", Reason: event.ReasonNewUserInput})
		tab.Await(`window.pause && ` + answering)
		l.record(start("demo:r0004", 3))
		tab.Await(`!window.pause && ` + answering)
		l.record(cancelled("demo:r0004"))
		tab.Await(`window.pause && ` + answering)
		tab.Do(`window.pause()`)
		tab.Await(idle)
	})
	tab.Run("the status does not depend on the search", func(t *testing.T) {
		tab.Do(`location.hash = "#onboarding"`) // closed according to the list
		tab.Await(`document.querySelector("#status").textContent === "closed"`)
		tab.Type("#search", "droid")
		tab.Await(`document.querySelectorAll("#list a").length === 1`)
		require.Equal(t, []string{"closed"}, tab.Text("#status"))
	})
	tab.Run("a failed list is reported", func(t *testing.T) {
		tab.Do(`
			window.works = window.fetch;
			window.fetch = () => Promise.reject(new TypeError("Failed to fetch"));
			document.querySelector("#search").dispatchEvent(new Event("input"))`)
		tab.Await(`["#list-note", "#banner"].every((line) =>
			document.querySelector(line).innerText === "Not connected: the gateway is unreachable. Retrying…")`)
		tab.Do(`window.fetch = window.works`)
		tab.Await(`document.querySelector("#list-note").hidden && document.querySelector("#banner").hidden`)
	})
}

func TestTheListOverridesTheStreamOnlyForATerminatedSession(t *testing.T) {
	started := event.LLMRequestStarted{RequestID: "demo:r0001", ProviderID: "openai", Model: "gpt-4o-mini", Attempt: 1}
	events, _, _ := newLog(event.SessionStarted{}).Snapshot()
	logged := events[0].Timestamp
	for name, test := range map[string]struct {
		closedAt time.Time
		statuses []string // shown from the start to the end of a request
	}{
		"an end before the newest event": {logged.Add(-time.Second), []string{"idle", "answering", "idle"}},
		"an end after the newest event":  {logged.Add(time.Second), []string{"closed"}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLog(event.SessionStarted{})
			list := []client.Summary{{ContextName: "demo", Status: wire.StatusClosed, ClosedAt: test.closedAt}, {ContextName: "other"}}
			w := serve(t, fakeClient{log: l, list: list}, gateway.Options{Page: page.Handler()})
			tab := browsertest.Start(t).Open(w.server.URL + "/#demo")
			tab.Await(`document.querySelectorAll("#list a").length === 2 && document.querySelector(".entry")`)
			tab.Type("#search", "other")
			tab.Await(fmt.Sprintf(`document.querySelectorAll("#list a").length === 1 && document.querySelector("#status").textContent === %q`, test.statuses[0]))
			tab.Do(`
				const status = document.querySelector("#status");
				window.statuses = [status.textContent];
				new MutationObserver(() => statuses.push(status.textContent)).observe(status, { childList: true })`)
			for _, step := range []struct {
				body event.Body
				seen string
			}{
				{started, `true`},
				{delta(0, "Good"), `document.querySelector(".streaming")`},
				{event.AssistantMessage{Content: "Good day", RequestID: "demo:r0001"}, `document.querySelector(".assistant-message:not(.streaming)")`},
				{event.LLMRequestCompleted{RequestID: "demo:r0001"}, `document.querySelector(".token-usage-info")`},
				{event.UserMessage{Content: "Bye"}, `document.querySelector(".user-message")`},
			} {
				l.record(step.body)
				tab.Await(step.seen)
			}
			var statuses []string
			tab.Await(fmt.Sprintf(`statuses.length >= %d`, len(test.statuses)))
			tab.Eval(`statuses`, &statuses)
			require.Equal(t, test.statuses, statuses)
		})
	}
}

func TestAMessageWaitsForAWorker(t *testing.T) {
	l := newLog()
	tab := show(t, l)
	tab.Await(`!document.querySelector("#empty").hidden`)
	l.Wait(waitingInput("Are you <b>there</b>?"))
	tab.Await(`document.querySelector("#stored .bubble")?.innerText === "Are you <b>there</b>?" && document.querySelector("#empty").hidden`)
	tab.Await(`document.querySelector("#unattended").innerText === "Stored in Temporal, waiting for a worker."`)
	l.record(event.LLMRequestStarted{RequestID: "demo:r0001", Attempt: 1}, event.TextDelta{RequestID: "demo:r0001", Attempt: 1, Delta: "Good"})
	tab.Await(`document.querySelector(".streaming") && document.querySelector("#status").innerText === "waiting for a worker"`)
	require.Equal(t, []string{"Stored in Temporal. No worker has taken it yet."}, tab.Text("#unattended"))
	var caret, warning string
	tab.Eval(`getComputedStyle(document.querySelector(".streaming .prose"), "::after").backgroundColor`, &caret)
	tab.Eval(`getComputedStyle(document.querySelector("#unattended")).color`, &warning)
	require.Equal(t, warning, caret, "the answer must not pulse")

	const stored = `document.querySelector("#stored .bubble") && document.querySelector("#status").innerText === "waiting for a worker" && document.querySelector("#empty").hidden`
	tab.Reload()
	tab.Await(stored)
	tab.Do(`location.hash = "#droid.parser"`)
	tab.Await(`document.querySelector("#name").textContent === "droid.parser" && !document.querySelector("#stored li") && document.querySelector("#unattended").hidden`)
	tab.Do(`location.hash = "#demo"`)
	tab.Await(stored)

	// The message must be shown once at all times.
	tab.Do(`
		window.counts = new Set();
		const count = () => { counts.add(document.querySelectorAll(".user-message").length); requestAnimationFrame(count) };
		requestAnimationFrame(count)`)
	recorded := event.New(event.UserMessage{Content: "Are you <b>there</b>?"})
	recorded.ClientEventID = "id of Are you <b>there</b>?"
	l.Record(recorded)
	tab.Await(`document.querySelector("#entries .user-message")`)
	l.Wait(waitingInput())
	tab.Await(`document.querySelector("#unattended").innerText === "The answer waits. No worker has taken it yet."`)
	var counts []int
	tab.Eval(`[...counts]`, &counts)
	require.Equal(t, []int{1}, counts)
	l.Wait(client.Waiting{})
	tab.Await(`document.querySelector("#status").innerText === "answering" && document.querySelector("#unattended").hidden`)
}
