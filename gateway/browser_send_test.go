package gateway_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
	"github.com/seed-9ed7edd4/chronicle/gateway/page"
	"github.com/seed-9ed7edd4/chronicle/internal/browsertest"
)

func TestAMessageIsRetriedUntilAcceptedAndRecordedOnce(t *testing.T) {
	l := newLog(event.UserMessage{Content: "Hi"})
	tries := make(chan string, 16)
	var up, refuses bool
	l.send = func(events []event.Event) (client.Receipt, error) {
		last := events[len(events)-1]
		tries <- last.ClientEventID
		l.mu.Lock()
		isUp, refusing := up, refuses
		l.mu.Unlock()
		switch {
		case refusing:
			return client.Receipt{}, fmt.Errorf("%w: it is busy", client.ErrRefused)
		case !isUp:
			return client.Receipt{}, client.ErrUnreachable
		}
		l.record(last.Body)
		return client.Receipt{ClientEventIDs: []string{last.ClientEventID}}, nil
	}
	tab := show(t, l)
	tab.Type("#text", "Are you there?\r")
	tab.Await(`document.querySelector("#outbox .retrying")?.innerText.includes("Temporal is unreachable; retrying")`)
	first := <-tries
	tab.Reload()
	require.Equal(t, first, <-tries, "the key must survive a reload")
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
	tab.Await(`document.querySelector("#outbox .rejected")?.innerText.includes("it is busy")`)
	rejected := <-tries
	l.mu.Lock()
	refuses = false
	l.mu.Unlock()
	tab.Click("#outbox button")
	tab.Await(`document.querySelectorAll(".user-message").length === 3 && !document.querySelector("#outbox li")`)
	require.NotEqual(t, rejected, <-tries, "the gateway remembers that it rejected the key")
}

func TestAnUnreachableGatewayIsReported(t *testing.T) {
	w := serve(t, fakeClient{log: newLog(event.UserMessage{Content: "Hi"}), limits: inlineLimits}, gateway.Options{Page: page.Handler()})
	tab := browsertest.Start(t).Open(w.server.URL + "/#demo")
	tab.Await(`document.querySelector(".entry")`)
	require.NoError(t, w.server.Listener.Close())
	w.server.CloseClientConnections()
	tab.Type("#text", "Are you there?\r")
	tab.Await(`document.querySelector("#outbox .retrying .state")?.innerText === "the gateway is unreachable; retrying"`)
	tab.Await(`document.querySelector("#banner").innerText === "Not connected: the gateway is unreachable. Retrying…"`)
}

func TestADraftSurvivesAReload(t *testing.T) {
	tab := show(t, newLog(event.UserMessage{Content: "Hi"}))
	reload := func() {
		tab.Reload()
		tab.Await(`document.querySelector(".entry")`)
	}
	tab.Type("#text", "for demo")
	tab.Do(`location.hash = "#droid.parser"`)
	tab.Await(`document.querySelector("#name").textContent === "droid.parser"`)
	tab.Type("#text", "for droid.parser")
	tab.Do(`location.hash = "#demo"`)
	tab.Await(`document.querySelector("#text").value === "for demo"`)
	reload()
	tab.Await(`document.querySelector("#text").value === "for demo" && !document.querySelector("#send").disabled`)
	tab.Do(`location.hash = "#droid.parser"`)
	tab.Await(`document.querySelector("#text").value === "for droid.parser"`)
	tab.Do(`location.hash = "#demo"`)
	tab.Await(`document.querySelector("#text").value === "for demo"`)
	tab.Type("#text", "\r")
	tab.Await(`document.querySelectorAll(".user-message").length === 2`)
	reload()
	var left string
	tab.Eval(`document.querySelector("#text").value`, &left)
	require.Empty(t, left, "a sent message must not remain as a draft")
}

// holdFile delays the reading of slow.txt until window.read is called.
const holdFile = `
	const read = FileReader.prototype.readAsDataURL;
	FileReader.prototype.readAsDataURL = function (file) {
		if (file.name !== "slow.txt") return read.call(this, file);
		window.read = () => new Promise((resolve) => {
			this.addEventListener("loadend", resolve);
			read.call(this, file);
		});
	};`

func TestFiles(t *testing.T) {
	l := newLog(event.UserMessage{Content: "Hi"})
	tab := showWith(t, l, client.Limits{Attachment: 4 * mib, OtherAttachment: 2 * mib, Attachments: 5 * mib})
	zeros := func(length int) []byte { return make([]byte, length) }
	text := func(length int) []byte { return []byte(strings.Repeat("x", length)) }
	tab.Run("are accepted by length and type", func(t *testing.T) {
		tab.Await(`document.querySelector("#attach").title === "Attach files, up to 4.0 MiB each"`)
		for _, test := range []struct {
			name, file string
			data       []byte
			state      string
		}{
			{"an image", "a.png", zeros(4 * mib), "4.0 MiB"},
			{"a long image", "a.png", zeros(4*mib + 1), "too large: at most 4.0 MiB"},
			{"text", "a.txt", text(4 * mib), "4.0 MiB"},
			{"text with the extension of a video", "a.mp4", text(4 * mib), "4.0 MiB"},
			{"text without an extension", "Makefile", text(3 * mib), "3.0 MiB"},
			{"text with a character across the end of the sample", "README", append([]byte("x"), strings.Repeat("ä", mib+1)...), "2.0 MiB"},
			{"a video", "a.mp4", zeros(2*mib + 1), "too large: at most 2.0 MiB for video/mp4, which models do not accept"},
			{"binary without an extension", "core", zeros(3 * mib), "too large: at most 2.0 MiB for application/octet-stream, which models do not accept"},
			{"a short file that models cannot be shown", "a.zip", zeros(2 * mib), "2.0 MiB"},
			{"nothing", "a.txt", nil, "empty"},
		} {
			tab.Attach("#picker", fileOf(t, test.file, test.data))
			tab.Await(`!document.querySelector("#files").innerText.includes("reading") && document.querySelector("#files li")`)
			require.Equal(t, []string{test.state}, tab.Text("#files .state"), test.name)
			tab.Click("#files button")
			tab.Await(`!document.querySelector("#files li")`)
		}
	})
	tab.Run("are limited in total", func(t *testing.T) {
		tab.Type("#text", "Look")
		tab.Attach("#picker", fileOf(t, "a.txt", text(3*mib)), fileOf(t, "b.txt", text(3*mib)))
		tab.Await(`document.querySelectorAll("#files li").length === 2 && !document.querySelector("#files").innerText.includes("reading")`)
		tab.Await(`document.querySelector("#send").disabled`)
		require.Equal(t, []string{"3.0 MiB", "too large in total: at most 5.0 MiB per message"}, tab.Text("#files .state"))
		tab.Click("#files li button")
		tab.Await(`!document.querySelector("#send").disabled`)
		tab.Click("#files li button")
		tab.Await(`!document.querySelector("#files li")`)
	})
	tab.Run("are attached by picker, drop and paste", func(t *testing.T) {
		tab.Attach("#picker", fileOf(t, "Makefile", []byte("all: test")))
		tab.Await(`document.querySelectorAll("#files li").length === 1`)
		tab.Do(`
			const files = (name, type) => { const t = new DataTransfer(); t.items.add(new File([name], name, { type })); return t };
			document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: files("dropped.txt", "text/plain"), bubbles: true, cancelable: true }));
			document.querySelector("#text").dispatchEvent(new ClipboardEvent("paste", { clipboardData: files("pasted.png", "image/png"), bubbles: true, cancelable: true }))`)
		tab.Await(`document.querySelectorAll("#files li").length === 3 && !document.querySelector("#files").innerText.includes("reading")`)
		tab.Await(`document.querySelector("#files li:last-child .thumbnail").textContent === "PNG"`) // it is no picture
		require.Equal(t, []string{"FILE", "TXT", "PNG"}, tab.Text("#files .thumbnail"))
		tab.Attach("#picker", fileOf(t, "pixel.gif", []byte(pixel)), fileOf(t, "a.pdf", []byte("%PDF-1.7")))
		tab.Await(`document.querySelector("#files img")?.naturalWidth === 1 && document.querySelectorAll("#files li").length === 5`)
		require.Equal(t, []string{"PDF\na.pdf\n8 B\n×"}, tab.Text("#files li:last-child"))
		for range 2 { // the last ones, with the keyboard
			tab.Type("#text", "")
			tab.PressWith(kb.ModifierShift, kb.Tab+kb.Tab)
			tab.Press(kb.Enter)
		}
		tab.Await(`document.querySelectorAll("#files li").length === 3 && document.activeElement.id === "text"`)
		tab.Type("#text", "\r")
		tab.Await(`document.querySelectorAll(".user-message").length === 2`)
		require.Equal(t, []string{"Makefile · text/plain · 9 B", "dropped.txt · text/plain · 11 B", "pasted.png · image/png · 10 B"}, tab.Text(".attachments li"))
		events, _, _ := l.Snapshot()
		require.Equal(t, event.FileAttachment{
			Source: event.Source{Type: event.SourceBlob, Data: []byte("all: test")}, MediaType: "text/plain", FileName: "Makefile", Size: 9,
		}, events[1].Body)
		require.Equal(t, event.UserMessage{Content: "Look"}, events[4].Body)
	})
	tab.Run("are read before their message is sent", func(t *testing.T) {
		tab.Do(holdFile)
		tab.Attach("#picker", fileOf(t, "slow.txt", []byte("slow")), fileOf(t, "fast.txt", []byte("fast")))
		tab.Await(`document.querySelector("#files").innerText.includes("4 B")`)
		require.Equal(t, []string{"reading…", "4 B"}, tab.Text("#files .state"), "files are read independently")
		tab.Type("#text", "Look\r")
		tab.Await(`document.querySelector("#send").disabled && document.querySelector("#text").value === "Look"`)
		tab.Do(`await window.read()`)
		tab.Await(`!document.querySelector("#send").disabled`)
		tab.Press(kb.Enter)
		tab.Await(`document.querySelectorAll(".user-message").length === 3`)
		require.Equal(t, []string{"slow.txt · text/plain · 4 B", "fast.txt · text/plain · 4 B"}, tab.Text(".attachments li")[3:])
		events, _, _ := l.Snapshot()
		require.Equal(t, []byte("slow"), events[len(events)-3].Body.(event.FileAttachment).Source.Data)
	})
	tab.Run("need no text", func(t *testing.T) {
		tab.Attach("#picker", fileOf(t, "alone.txt", []byte("alone")))
		tab.Await(`!document.querySelector("#send").disabled`)
		tab.Click("#send")
		tab.Await(`document.querySelectorAll(".user-message").length === 4 && document.querySelector("#send").disabled`)
		require.Equal(t, []string{"alone.txt · text/plain · 5 B"}, tab.Text(".attachments li")[5:])
		require.Equal(t, event.Body(event.UserMessage{}), last(l))
	})
	tab.Run("that are read late join the draft for which they were chosen", func(t *testing.T) {
		tab.Attach("#picker", fileOf(t, "slow.txt", []byte("slow")))
		tab.Await(`document.querySelector("#files .state")?.innerText === "reading…"`)
		tab.Do(`location.hash = "#droid.parser"`)
		tab.Await(`document.querySelector("#name").textContent === "droid.parser"`)
		tab.Do(`await window.read()`)
		require.Empty(t, tab.Text("#files li"))
		tab.Do(`location.hash = "#demo"`)
		tab.Await(`document.querySelector("#files .state")?.innerText === "4 B"`)
		tab.Click("#files button")
	})
	tab.Run("that cannot be read are reported", func(t *testing.T) {
		for name, data := range map[string]string{"gone.txt": "Hello", "gone": "no type"} {
			path := fileOf(t, name, []byte(data))
			tab.Do(`window.kept ??= document.body.appendChild(Object.assign(document.createElement("input"), { type: "file", id: "kept" }))`)
			tab.Attach("#kept", path)
			require.NoError(t, os.Remove(path))
			tab.Do(`
				const transfer = new DataTransfer();
				transfer.items.add(window.kept.files[0]);
				document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true }))`)
			tab.Await(`document.querySelector("#files .rejected")?.innerText.includes("cannot be read")`)
			tab.Click("#files .rejected button")
			tab.Await(`!document.querySelector("#files li")`)
		}
	})
}

func TestARejectedMessageIsEditedWithItsFiles(t *testing.T) {
	l := newLog(event.UserMessage{Content: "Hi"})
	var busy atomic.Bool
	l.send = func(events []event.Event) (client.Receipt, error) {
		if busy.Load() {
			return client.Receipt{}, fmt.Errorf("%w: it is busy", client.ErrRefused)
		}
		for _, e := range events {
			l.record(e.Body)
		}
		return client.Receipt{}, nil
	}
	busy.Store(true)
	tab := show(t, l)
	tab.Attach("#picker", fileOf(t, "a.txt", []byte("first")))
	tab.Type("#text", "Look")
	tab.Await(`!document.querySelector("#send").disabled`)
	tab.Press(kb.Enter)
	tab.Await(`document.querySelector("#outbox .rejected")`)
	tab.Do(`location.hash = "#droid.parser"`)
	tab.Await(`document.querySelector("#name").textContent === "droid.parser"`)
	require.Empty(t, tab.Text("#outbox li"), "the outbox of another context")
	tab.Reload()
	tab.Do(`location.hash = "#demo"`)
	tab.Await(`document.querySelector("#outbox .rejected")`)
	tab.Attach("#picker", fileOf(t, "b.txt", []byte("second")))
	tab.Type("#text", "and there")
	tab.Click("#outbox button:last-child")
	tab.Await(`document.querySelectorAll("#files li").length === 2 && document.querySelector("#text").value === "Look\nand there"`)
	require.Equal(t, []string{"a.txt", "b.txt"}, tab.Text("#files .name"))
	tab.Do(`location.hash = "#droid.parser"`)
	tab.Await(`document.querySelector("#name").textContent === "droid.parser"`)
	require.Empty(t, tab.Text("#files li"), "the draft of another context")
	tab.Do(`location.hash = "#demo"`)
	tab.Await(`document.querySelectorAll("#files li").length === 2`)

	busy.Store(false)
	tab.Type("#text", "\r")
	tab.Await(`document.querySelectorAll(".user-message").length === 2`)
	require.Equal(t, []string{"a.txt · text/plain · 5 B", "b.txt · text/plain · 6 B"}, tab.Text(".attachments li"))
}

func TestTheBrowserAsksBeforeDiscardingALongFile(t *testing.T) {
	l := newLog(event.UserMessage{Content: "Hi"})
	var up atomic.Bool
	l.send = func(events []event.Event) (client.Receipt, error) {
		if !up.Load() {
			return client.Receipt{}, client.ErrUnreachable
		}
		for _, e := range events {
			l.record(e.Body)
		}
		return client.Receipt{}, nil
	}
	tab := showWith(t, l, client.Limits{Attachment: 20 * mib, OtherAttachment: mib})
	asks := func() (asks bool) {
		tab.Eval(`!dispatchEvent(new Event("beforeunload", { cancelable: true }))`, &asks)
		return asks
	}
	tab.Type("#text", "short\r")
	tab.Await(`document.querySelector("#outbox .retrying")`)
	require.False(t, asks(), "a short message survives a reload")
	tab.Attach("#picker", fileOf(t, "photo.jpg", make([]byte, 4*mib)))
	tab.Type("#text", "long")
	tab.Await(`!document.querySelector("#send").disabled`)
	tab.Press(kb.Enter)
	tab.Await(`document.querySelectorAll("#outbox li").length === 2`)
	require.True(t, asks())
	up.Store(true)
	tab.Do(`dispatchEvent(new Event("online"))`)
	tab.Await(`document.querySelectorAll(".user-message").length === 3 && !document.querySelector("#outbox li")`)
	require.Equal(t, []string{"photo.jpg · image/jpeg · 4.0 MiB"}, tab.Text(".attachments li"))
	require.False(t, asks())
}

func fileOf(t *testing.T, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, data, 0o600))
	return path
}

func TestThePageWorksWithTheKeyboard(t *testing.T) {
	tab := show(t, newLog(event.UserMessage{Content: "Hi"}))
	tab.Await(`document.activeElement.id === "text" && document.querySelectorAll("#list a").length === 4`)
	tab.Press("one")
	tab.PressWith(kb.ModifierShift, kb.Enter)
	tab.Press("two/2")
	tab.Await(`document.querySelector("#text").value === "one\ntwo/2"`)
	tab.PressWith(kb.ModifierCtrl, "k")
	tab.Await(`document.activeElement.id === "search"`)
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
	tab.Await(`document.querySelector("#find-hint").textContent === "Enter creates “brand-new”"`)
	tab.Press(kb.Enter)
	tab.Await(`location.hash === "#brand-new" && document.querySelector("#name").textContent === "brand-new"`)
	tab.Do(`location.hash = "#demo"`)
	tab.Await(`document.querySelector("#text").value === "one\ntwo/2"`)

	var nameless []string
	tab.Eval(`[...document.querySelectorAll("button, input, textarea, a")].filter((e) =>
		!(e.getAttribute("aria-label") || e.textContent.trim() || e.labels?.length || e.hidden)).map((e) => e.outerHTML)`, &nameless)
	require.Empty(t, nameless)
}
