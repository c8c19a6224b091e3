package gateway_test

import (
	"bytes"
	"image"
	"image/png"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
	"github.com/seed-9ed7edd4/chronicle/gateway/auth"
	"github.com/seed-9ed7edd4/chronicle/internal/browsertest"
)

func TestTheDialogSharesAConversationThatOthersRead(t *testing.T) {
	browser := browsertest.Start(t)
	var picture bytes.Buffer
	require.NoError(t, png.Encode(&picture, image.NewGray(image.Rect(0, 0, 3, 2))))
	l := newLog(
		event.FileAttachment{Source: event.Source{Type: event.SourceBlob, Data: picture.Bytes()}, MediaType: "image/png", FileName: "plan.png"},
		event.UserMessage{Content: "Hello"}, event.SetDetails{Title: new("The plan")},
	)
	s := newSharer(t, l, gateway.Options{})
	tab := browser.Open(s.server.URL + "/#demo")
	tab.Await(`!document.querySelector("#sign-in").hidden`)
	tab.Type("#token", s.token+"\r")
	tab.Await(`document.querySelector(".user-message")?.innerText.includes("Hello")`)
	tab.Click("#menu-button")
	tab.Click("#share")
	tab.Await(`sharing.open`)
	tab.Click("#sharing [value=share]")
	tab.Await(`document.querySelector("#share-note").checkVisibility() && document.querySelector("#share-note").textContent.includes("It ends on ")`)
	var url string
	tab.Eval(`document.querySelector("#share-url").value`, &url)
	require.True(t, strings.HasPrefix(url, s.server.URL+"/#share="+auth.SharePrefix), url)

	other := browser.Open(url)
	other.Await(`document.querySelector(".user-message")?.innerText.includes("Hello") && document.querySelector("#name").textContent === "The plan"`)
	other.Await(`document.querySelector(".attachments img")?.naturalWidth === 3`)
	require.Empty(t, visibleIDs(other, "#contexts, #composer, #back, #sign-in, #rename, #share, .controls button:not(.copy)"))
	l.record(event.AssistantMessage{Content: "streamed by the link"})
	other.Await(`document.querySelector(".assistant-message")?.innerText.includes("streamed")`)
	other.Press("n")
	other.Reload()
	other.Await(`document.querySelector(".assistant-message")?.innerText.includes("streamed")`)
	require.Empty(t, visibleIDs(other, "#banner"))
	l.mu.Lock()
	require.Empty(t, l.sent)
	l.mu.Unlock()

	unavailable := browser.Open(url)
	unavailable.Before(`{ const { fetch } = window; window.fetch = (url, options) => (url === "auth/session" ? Promise.reject(new Error("offline")) : fetch(url, options)) }`)
	unavailable.Reload()
	unavailable.Await(`document.querySelector("#sign-in-note").innerText === "The gateway cannot read this link now. Please reload the page later."`)

	require.NoError(t, s.file.Revoke(s.tokenID))
	other.Reload()
	other.Await(`document.querySelector("#sign-in-note").innerText === "This link has expired, or was revoked. Ask for another one."`)
	require.Empty(t, visibleIDs(other, "#provider, #with-token"))

	deleted := newSharer(t, l, gateway.Options{})
	gone := browser.Open(deleted.share("").URL)
	gone.Await(`document.querySelector(".user-message")`)
	l.Fail(client.ErrDeleted)
	gone.Await(`document.getElementById("banner").textContent === "This conversation was deleted."`)
	gone.Reload()
	gone.Await(`document.getElementById("banner").textContent === "This conversation was deleted."`)
}

func TestTheDialogSaysWhyItCannotShare(t *testing.T) {
	tab := show(t, newLog(event.UserMessage{Content: "Hello"}))
	tab.Click("#menu-button")
	tab.Click("#share")
	tab.Click("#sharing [value=share]")
	tab.Await(`document.querySelector("#sharing [role=alert]").textContent.endsWith("send the address of the page, or set --auth of the gateway")`)
}
