package gateway_test

import (
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"sync"
	"testing"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
	"github.com/seed-9ed7edd4/chronicle/gateway/page"
	"github.com/seed-9ed7edd4/chronicle/internal/browsertest"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// branching is a client whose context demo can be forked. It answers each message.
type branching struct {
	fakeClient
	mu     sync.Mutex
	logs   map[string]*log
	forks  []client.Branch
	isGone bool        // demo is deleted
	keys   chan string // of the forks
}

func (b *branching) Tenant(string) (*branching, error) { return b, nil }

func (b *branching) Open(name string) (*log, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.logs[name], nil
}

func (b *branching) List(context.Context, string) iter.Seq2[client.Summary, error] {
	return func(yield func(client.Summary, error) bool) {
		b.mu.Lock()
		defer b.mu.Unlock()
		list := []client.Summary{{ContextName: "release-notes", Status: wire.StatusIdle, Model: "gpt-4o"}}
		for _, fork := range b.forks {
			list = append(list, client.Summary{ContextName: fork.ContextName, Root: "demo", Status: wire.StatusIdle, Model: "gpt-4o-mini"})
		}
		if !b.isGone {
			list = append(list, client.Summary{ContextName: "demo", Status: wire.StatusIdle, Model: "gpt-4o-mini"})
		}
		for _, s := range list {
			if !yield(s, nil) {
				return
			}
		}
	}
}

func (b *branching) Summary(ctx context.Context, name string) (client.Summary, error) {
	for s := range b.List(ctx, "") {
		if s.ContextName == name {
			return s, nil
		}
	}
	return client.Summary{}, client.ErrNoContext
}

func (b *branching) Events(ctx context.Context, name, from string) iter.Seq2[event.Event, error] {
	b.mu.Lock()
	defer b.mu.Unlock()
	if l := b.logs[name]; l != nil && !(b.isGone && name == "demo") {
		return l.Events(ctx, from)
	}
	return newLogOf(name).Events(ctx, from)
}

// add creates a context that shares events with another one.
func (b *branching) add(name string, shared ...event.Event) *log {
	l := newLogOf(name)
	for _, e := range shared {
		l.record(e.MovedTo(name).Body)
	}
	l.send = func(events []event.Event) (client.Receipt, error) {
		for _, e := range events {
			l.record(e.Body)
		}
		l.record(event.AssistantMessage{Content: fmt.Sprintf("An answer in %s.", name)})
		return client.Receipt{ClientEventIDs: []string{"x"}, EventIDs: []string{event.FormatID(name, 1)}}, nil
	}
	l.branches = func() client.Branches { return b.branches(name) }
	l.branch = func(o client.BranchOptions) (client.Branched, error) { return b.fork(l, o) }
	b.logs[name] = l
	return l
}

func (b *branching) fork(l *log, o client.BranchOptions) (client.Branched, error) {
	b.keys <- o.Key
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(o.Events) > 0 && o.Events[0].Body.(event.SetProviderConfig).Model == "none" {
		return client.Branched{}, client.ErrUnreachable
	}
	events, _, _ := l.Snapshot()
	at := event.Counter(o.Before+o.Regenerate) - 1
	fork := client.Branch{ContextName: fmt.Sprintf("demo-%d", len(b.forks)+2), ForkedFrom: event.FormatID(l.Name(), at)}
	created := b.add(fork.ContextName, events[:at]...)
	created.record(event.SessionStarted{ForkedFrom: fork.ForkedFrom})
	for _, e := range o.Events {
		created.record(e.Body)
	}
	if o.Regenerate != "" {
		created.record(event.AnswerRequested{}, event.AssistantMessage{Content: "Another answer."})
	}
	b.forks = append(b.forks, fork)
	return client.Branched{ContextName: fork.ContextName, ForkedFrom: fork.ForkedFrom}, nil
}

// branches knows forks of demo only.
func (b *branching) branches(name string) client.Branches {
	b.mu.Lock()
	defer b.mu.Unlock()
	choices := map[int]*client.Choice{}
	found := client.Branches{Choices: []client.Choice{}}
	for _, fork := range b.forks {
		at := event.Counter(fork.ForkedFrom)
		if choices[at] == nil {
			choices[at] = &client.Choice{After: event.FormatID(name, at), Contexts: []string{"demo"}}
		}
		choices[at].Contexts = append(choices[at].Contexts, fork.ContextName)
	}
	for _, choice := range choices {
		for _, member := range choice.Contexts {
			if member == name {
				found.Choices = append(found.Choices, *choice)
			}
		}
	}
	found.Contexts = append([]client.Branch{{ContextName: "demo"}}, b.forks...)
	return found
}

func TestAConversationIsBranchedByKeyboard(t *testing.T) {
	b := &branching{logs: map[string]*log{}, keys: make(chan string, 16)}
	b.add("release-notes").record(event.UserMessage{Content: "Hi"})
	demo := b.add("demo")
	demo.record(event.SessionStarted{}, event.UserMessage{Content: "Name a <b>river</b>."}, event.AssistantMessage{Content: "The Rhine."},
		event.UserMessage{Content: "And a lake?"}, event.AssistantMessage{Content: "Lake Constance."})
	w := serve(t, b, gateway.Options{Page: page.Handler()})
	tab := browsertest.Start(t).Open(w.server.URL + "/#demo")
	tab.Await(`document.querySelectorAll(".assistant-message").length === 2 && document.activeElement.id === "text"`)
	require.Empty(t, tab.Text(".switch"))
	focus := func(key string) string { return fmt.Sprintf(`document.activeElement.dataset.key === %q`, key) }
	hash := func(name string) string { return fmt.Sprintf(`location.hash === "#%s"`, name) }

	// Edit a message.
	tab.Type(`.user-message [data-key="edit-message"]`, kb.Enter)
	tab.Await(focus("text") + ` && document.activeElement.value === "Name a <b>river</b>."`)
	tab.Press("x" + kb.Escape)
	tab.Await(focus("edit-message") + ` && !document.querySelector(".branch-form")`)
	tab.Press(kb.Enter)
	tab.Await(focus("text"))
	tab.Do(`document.activeElement.select()`)
	tab.Press("Name a sea.\r")
	tab.Await(hash("demo-2") + ` && document.querySelector(".assistant-message")?.innerText.includes("An answer in demo-2.")`)
	require.Equal(t, "Name a sea.", tab.Text(".user-message .bubble")[0])
	tab.Await(`document.querySelector(".user-message .switch")?.textContent === "‹2/2›"`)

	// Switch with the keyboard: the focus stays on the control.
	tab.Type(`.user-message [data-key="previous"]`, kb.Enter)
	tab.Await(hash("demo") + ` && ` + focus("previous") + ` && document.activeElement.closest(".switch").textContent === "‹1/2›"`)
	require.Equal(t, "Name a <b>river</b>.", tab.Text(".user-message .bubble")[0])
	tab.Press(kb.Tab)
	tab.Press(" ")
	tab.Await(focus("next") + ` && document.activeElement.closest(".switch").textContent === "‹2/2›"`)
	tab.Press(kb.Enter) // there is none
	tab.Type(`.user-message [data-key="previous"]`, " ")
	tab.Await(focus("previous") + ` && document.activeElement.closest(".switch").textContent === "‹1/2›"`)

	// Regenerate an answer, with another model; an error keeps what was entered.
	tab.Type(`.assistant-message ~ .assistant-message [data-key="regenerate"]`, kb.Enter)
	tab.Await(focus("submit") + ` && performance.getEntriesByType("resource").some(({ name }) => name.endsWith("/contexts/demo/state"))`)
	tab.Type(`.branch-form [data-key="model"]`, "none\r")
	tab.Await(`document.querySelector(".branch-form .problem").innerText === "Enter a provider and a model."`)
	tab.Type(`.branch-form [data-key="provider"]`, "openai\r")
	tab.Await(`document.querySelector(".branch-form .problem").innerText === "Temporal is unreachable"`)
	edited, failed := <-b.keys, <-b.keys
	require.NotEqual(t, edited, failed)
	tab.Press("\r")
	require.Equal(t, failed, <-b.keys, "a repeated request must not fork twice")
	tab.Await(`document.querySelector(".branch-form .problem").innerText === "Temporal is unreachable"`)
	tab.Type(`.branch-form [data-key="model"]`, "")
	tab.Do(`document.activeElement.select()`)
	tab.Press("gpt-4o\r")
	tab.Await(hash("demo-3") + ` && [...document.querySelectorAll(".assistant-message")].at(-1)?.innerText.includes("Another answer.")`)
	tab.Await(`[...document.querySelectorAll(".assistant-message .switch")].at(-1)?.textContent === "‹2/2›"`)
	require.NotEqual(t, failed, <-b.keys)
	events, _, _ := b.logs["demo-3"].Snapshot()
	require.Contains(t, bodiesOf(events), event.Body(event.SetProviderConfig{ProviderID: "openai", Model: "gpt-4o"}))

	// Compare the alternatives.
	tab.Click(`.assistant-message ~ .assistant-message [data-key="compare"]`)
	tab.Await(`compare.open && document.querySelector("#left-entries").innerText.includes("Lake Constance.") && document.querySelector("#right-entries").innerText.includes("Another answer.")`)
	require.NotContains(t, tab.Text("#left-entries")[0], "And a lake?", "both have this message")
	if *screenshots {
		tab.As(browsertest.Look{Width: 1000, Height: 620})
		screenshot(tab, "compare")
	}
	for _, width := range []int64{390, 600} {
		tab.As(browsertest.Look{Width: width, Height: 200})
		var over []string
		tab.Eval(`(() => {
			const parts = [...document.querySelectorAll("#compare section > *")].map((part) => ({ name: part.id || part.innerText, top: part.getBoundingClientRect().top, height: part.scrollHeight }));
			return parts.filter(({ top, height }, i) => top + height > parts[i + 1]?.top).map(({ name }) => name);
		})()`, &over)
		require.Empty(t, over, "drawn over the next part in a window of %d pixels", width)
		tab.Eval(`[...document.querySelectorAll("#compare a")].filter((a) => a.scrollWidth > a.clientWidth || a.getBoundingClientRect().right > compare.getBoundingClientRect().right).map((a) => a.id)`, &over)
		require.Empty(t, over, "clipped in a window of %d pixels", width)
	}
	tab.As(browsertest.Look{Width: 1200, Height: 800})
	tab.Press(kb.Escape)
	tab.Await(`!compare.open`)

	// The list shows the conversation once.
	tab.Await(`document.querySelectorAll("#list > li").length === 2 && document.querySelectorAll("#list .branches a").length === 2`)
	require.Equal(t, []string{"#demo", "#release-notes"}, each(tab, "#list > li > a", "e.hash"))
	require.Equal(t, []string{"demo-2", "demo-3"}, tab.Text("#list .branches .name"))
	require.Contains(t, tab.Text("#list > li:nth-child(1) > a .details")[0], "2 branches")
	if *screenshots {
		tab.Do(`document.activeElement.blur()`)
		tab.As(browsertest.Look{Width: 1200, Height: 760})
		tab.Screenshot(filepath.Join("..", "docs", "images", "page-branches.png"))
	}
	tab.Type("#search", kb.ArrowDown+kb.ArrowDown+kb.Enter)
	tab.Await(hash("demo-2") + ` && document.querySelector("#list .branches [aria-current]")?.innerText.startsWith("demo-2")`)
	tab.Type("#search", kb.ArrowDown+kb.ArrowDown+kb.ArrowDown+kb.ArrowDown+kb.Enter)
	tab.Await(hash("release-notes") + ` && document.querySelector("#list .branches").hidden`)
	require.Empty(t, tab.Text("#list .branches a:not([hidden] a)"))

	// A root that is deleted is not listed.
	b.mu.Lock()
	b.isGone = true
	b.mu.Unlock()
	tab.Do(`location.hash = "#demo-3"`)
	tab.Await(`[...document.querySelectorAll("#list > li > a")].map((e) => e.hash.slice(1)).join() === "demo-2,release-notes"`)
	require.Equal(t, []string{"demo-3"}, tab.Text("#list .branches:not([hidden]) .name"))
	b.mu.Lock()
	b.isGone = false
	b.mu.Unlock()
	tab.Await(`[...document.querySelectorAll("#list .branches:not([hidden]) .name")].map((e) => e.textContent).join() === "demo-2,demo-3"`)
	require.Len(t, tab.Text("#list ul"), 1)
}

func TestAnAlternativeThatArrivesLateIsRevealed(t *testing.T) {
	b := &branching{logs: map[string]*log{}, forks: []client.Branch{
		{ContextName: "demo-2", ForkedFrom: "demo:0001"}, {ContextName: "demo-3", ForkedFrom: "demo:0001"},
	}}
	b.add("demo").record(event.SessionStarted{}, event.UserMessage{Content: "Name a river."}, event.AssistantMessage{Content: "The Rhine."})
	for _, fork := range b.forks {
		b.add(fork.ContextName).record(event.SessionStarted{}, event.SessionStarted{ForkedFrom: "demo:0001"})
	}
	w := serve(t, b, gateway.Options{Page: page.Handler()})
	tab := browsertest.Start(t).Open(w.server.URL + "/#demo")
	tab.Before(`const fetched = window.fetch;
		let tries = 0;
		window.fetch = (url, options) => (String(url).endsWith("/branches") && tries++ === 0 ? Promise.reject(new TypeError("lost")) : fetched(url, options))`)
	tab.Reload()
	tab.Await(`document.querySelector(".user-message .switch")?.textContent === "‹1/3›"`) // the second try
	tab.Type(`.user-message [data-key="next"]`, kb.Enter)
	tab.Await(`location.hash === "#demo-2" && document.querySelector("#entries").innerText.includes("a fork of demo:0001")`)
	b.logs["demo-2"].record(event.UserMessage{Content: "Name a sea."})
	tab.Await(`document.activeElement.closest(".user-message .switch")?.textContent === "‹2/3›"`)

	// The focus stays where a person types in the meantime.
	tab.Press(kb.Enter)
	tab.Await(`location.hash === "#demo-3" && document.querySelector("#entries").innerText.includes("a fork of demo:0001")`)
	tab.Type("#text", "x")
	b.logs["demo-3"].record(event.UserMessage{Content: "Name a lake."})
	tab.Await(`document.querySelector(".user-message .switch")?.textContent === "‹3/3›"`)
	tab.Await(`document.activeElement.id === "text"`)
}

func bodiesOf(events []event.Event) (bodies []event.Body) {
	for _, e := range events {
		bodies = append(bodies, e.Body)
	}
	return bodies
}
