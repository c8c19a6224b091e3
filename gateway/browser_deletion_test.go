package gateway_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/browsertest"
)

func TestTheDialogDeletesTheContext(t *testing.T) {
	l := newLog(event.UserMessage{Content: "Hello"})
	tab := show(t, l)
	ask := func() {
		tab.Click("#menu-button")
		tab.Click("#delete")
		tab.Await(`deletion.open && document.getElementById("deletion-title").textContent === "Delete demo?"`)
	}
	ask()
	tab.Await(`document.querySelector("#deletion label").hidden`)
	tab.Click("#deletion [value=cancel]")
	l.branches = func() client.Branches {
		return client.Branches{Contexts: []client.Branch{{ContextName: "demo"}, {ContextName: "copy", ForkedFrom: "demo:0001"}}, Choices: []client.Choice{}}
	}
	tab.Await(`!deletion.open`)
	ask()
	tab.Await(`!document.querySelector("#deletion label").hidden`)
	if *screenshots {
		tab.As(browsertest.Look{Width: 800, Height: 520})
		tab.Screenshot(filepath.Join("..", "docs", "images", "page-deletion.png"))
	}
	tab.Click("#deletion [value=cancel]")
	tab.Await(`!deletion.open`)
	require.Empty(t, l.asked())

	l.Fail(client.ErrNoWorker)
	ask()
	tab.Click("#deletion-forks")
	tab.Click("#deletion [value=delete]")
	tab.Await(`deletion.open && document.querySelector("#deletion [role=alert]").textContent.startsWith("Not deleted: ")`)
	require.Equal(t, []string{"delete delete"}, l.asked())

	l.Fail(nil)
	tab.Click("#deletion [value=delete]")
	tab.Await(`location.hash === "" && !document.body.classList.contains("open") && document.getElementById("deleting-note").textContent === "Deleted."`)
	require.Equal(t, []string{"2 histories in Temporal", "1 fork", "1 fork kept, with a copy of what it shared"}, tab.Text("#deleting-places li"))
	require.Equal(t, []string{"delete delete", "delete delete", "deletion"}, l.asked())
	tab.Click("#deleting [value=cancel]")
	tab.Await(`!deleting.open`)
}

func TestADeletedContextIsNotFollowed(t *testing.T) {
	l := newLog(event.UserMessage{Content: "Hello"})
	tab := show(t, l)
	tab.Await(`document.getElementById("status").textContent === "idle"`)
	l.Fail(client.ErrDeleted)
	const isShown = `document.getElementById("banner").textContent === "This conversation was deleted." && document.getElementById("status").textContent === "deleted" && !document.querySelector(".entry")`
	tab.Await(isShown)
	tab.Reload()
	tab.Await(isShown)
}

func (l *log) asked() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.calls)
}
