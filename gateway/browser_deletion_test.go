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
	tab.Click("#delete")
	tab.Await(`deletion.open && document.getElementById("deletion-title").textContent === "Delete demo?"`)
	if *screenshots {
		tab.As(browsertest.Look{Width: 800, Height: 520})
		tab.Screenshot(filepath.Join("..", "docs", "images", "page-deletion.png"))
	}
	tab.Click("#deletion [value='']")
	tab.Await(`!deletion.open`)
	require.Empty(t, l.asked())

	l.Fail(client.ErrNoWorker)
	tab.Click("#delete")
	tab.Click("#deletion-forks")
	tab.Click("#deletion [value=delete]")
	tab.Await(`deletion.open && document.getElementById("deletion-error").textContent.startsWith("Not deleted: ")`)
	require.Equal(t, []string{"delete delete"}, l.asked())

	l.Fail(nil)
	tab.Click("#deletion [value=delete]")
	tab.Await(`location.hash === "" && !document.body.classList.contains("open")`)
	require.Equal(t, []string{"delete delete", "delete delete"}, l.asked())
}

func (l *log) asked() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.calls)
}
