package gateway_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/session"
)

func TestAMessageIsSentUntilItIsTakenAndThenOnce(t *testing.T) {
	l := newLog(event.UserMessage{Content: "Hi"})
	tries := make(chan string, 16)
	var up, refuses bool
	l.send = func(events []event.Event) (session.Receipt, error) {
		last := events[len(events)-1]
		tries <- last.ClientEventID
		l.mu.Lock()
		isUp, refusing := up, refuses
		l.mu.Unlock()
		switch {
		case refusing:
			return session.Receipt{}, fmt.Errorf("%w: it is busy", session.ErrRefused)
		case !isUp:
			return session.Receipt{}, session.ErrUnreachable
		}
		l.record(last.Body)
		return session.Receipt{ClientEventIDs: []string{last.ClientEventID}}, nil
	}
	tab := show(t, l)
	tab.Type("#text", "Are you there?\r")
	tab.Await(`document.querySelector("#outbox .trouble")?.innerText.includes("Temporal is unreachable; trying again")`)
	first := <-tries
	tab.Reload()
	require.Equal(t, first, <-tries, "the key survives that the page is loaded again")
	l.mu.Lock()
	up = true
	l.mu.Unlock()
	tab.Await(`document.querySelectorAll(".user-message").length === 2 && !document.querySelector("#outbox li")`)
	for len(tries) > 0 {
		require.Equal(t, first, <-tries)
	}

	l.mu.Lock()
	refuses = true
	l.mu.Unlock()
	tab.Type("#text", "And now?\r")
	tab.Await(`document.querySelector("#outbox .refused")?.innerText.includes("it is busy")`)
	tab.Click("#outbox button")
	tab.Await(`document.querySelector("#text").value === "And now?" && !document.querySelector("#outbox li")`)
}

func TestFilesComeAlongByChoosingDroppingAndPasting(t *testing.T) {
	l := newLog(event.UserMessage{Content: "Hi"})
	tab := show(t, l)
	folder := t.TempDir()
	write := func(name string, data []byte) string {
		path := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(path, data, 0o600))
		return path
	}
	tab.Attach("#picker", write("Makefile", []byte("all: test")), write("huge.bin", bytes.Repeat([]byte{0}, 1<<20+1)))
	tab.Await(`document.querySelector("#files .refused")?.innerText.includes("at most 1.0 MiB")`)
	tab.Type("#text", "Look")
	tab.Await(`document.querySelector("#send").disabled`)
	tab.Click("#files .refused button")
	tab.Await(`!document.querySelector("#send").disabled`)
	tab.Do(`
		const files = (name, type) => { const t = new DataTransfer(); t.items.add(new File([name], name, { type })); return t };
		document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: files("dropped.txt", "text/plain"), bubbles: true, cancelable: true }));
		document.querySelector("#text").dispatchEvent(new ClipboardEvent("paste", { clipboardData: files("pasted.png", "image/png"), bubbles: true, cancelable: true }))`)
	tab.Await(`document.querySelectorAll("#files li").length === 3 && document.querySelector("#files img")`)
	tab.Press(kb.Enter)
	tab.Await(`document.querySelectorAll(".user-message").length === 2`)
	require.Equal(t, []string{"Makefile · text/plain · 9 B", "dropped.txt · text/plain · 11 B", "pasted.png · image/png · 10 B"}, tab.Text(".attachments li"))
	events, _, _ := l.snapshot()
	require.Equal(t, event.FileAttachment{
		Source: event.Source{Type: event.SourceBlob, Data: []byte("all: test")}, MediaType: "text/plain", FileName: "Makefile", Size: 9,
	}, events[1].Body)
	require.Equal(t, event.UserMessage{Content: "Look"}, events[4].Body)
}

func TestThePageIsUsedByKeys(t *testing.T) {
	tab := show(t, newLog(event.UserMessage{Content: "Hi"}))
	tab.Await(`document.activeElement.id === "text" && document.querySelectorAll("#list a").length === 4`)
	tab.Press("one")
	tab.PressWith(kb.ModifierShift, kb.Enter)
	tab.Press("two/2")
	tab.Await(`document.querySelector("#text").value === "one\ntwo/2"`)
	tab.Do(`document.querySelector("#scroller").focus()`)
	tab.Press("/")
	tab.Await(`document.activeElement.id === "search"`)
	tab.Press("droid")
	tab.Await(`document.querySelectorAll("#list a").length === 1`)
	tab.Press(kb.ArrowDown)
	tab.Await(`document.activeElement.matches('#list a[href="#droid.parser"]')`)
	tab.Press(kb.Enter)
	tab.Await(`location.hash === "#droid.parser" && document.querySelector("#name").textContent === "droid.parser"`)
	tab.Await(`document.querySelector("#text").value === ""`)

	tab.Do(`document.querySelector("#search").focus(); document.querySelector("#search").select()`)
	tab.Press("brand-new")
	tab.Await(`document.querySelector("#find-hint").textContent === "Enter begins “brand-new”"`)
	tab.Press(kb.Enter)
	tab.Await(`location.hash === "#brand-new" && document.querySelector("#name").textContent === "brand-new"`)
	tab.Do(`location.hash = "#demo"`)
	tab.Await(`document.querySelector("#text").value === "one\ntwo/2"`)

	var nameless []string
	tab.Eval(`[...document.querySelectorAll("button, input, textarea, a")].filter((e) =>
		!(e.getAttribute("aria-label") || e.textContent.trim() || e.hidden)).map((e) => e.outerHTML)`, &nameless)
	require.Empty(t, nameless)
}
