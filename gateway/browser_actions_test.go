package gateway_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
	"github.com/seed-9ed7edd4/chronicle/gateway/auth"
	"github.com/seed-9ed7edd4/chronicle/internal/browsertest"
)

func TestMessagesAreCopiedFoldedRetriedAndSentAgain(t *testing.T) {
	long := strings.Repeat("a long line of a pasted log\n", 60)
	l := newLog(
		event.UserMessage{Content: long},
		event.AssistantMessage{Content: "Run **this**:\n\n```sh\nmake run\n```"},
		event.InputRejected{Reason: "an answer is running (policy reject)", Input: `{"_tag":"UserMessageEvent","clientEventId":"1","content":"And <b>now</b>?"}`},
		event.InputRejected{Reason: "_tag: missing", Input: `{"content":"no message"}`},
		event.LLMRequestFailed{RequestID: "demo:r0001", Error: "unavailable", Retryable: true},
	)
	tab := show(t, l)
	tab.Run("copy", func(t *testing.T) {
		for _, clipboard := range []string{
			`navigator.clipboard.writeText = async (text) => { window.copied = text }`,
			`navigator.clipboard.writeText = async () => { throw new Error("denied") };
				document.addEventListener("copy", () => { window.copied = document.activeElement.value })`,
		} {
			tab.Do(clipboard)
			for selector, want := range map[string]string{".assistant-message .controls .copy": "Run **this**:\n\n```sh\nmake run\n```", ".code-block .copy": "make run\n"} {
				tab.Do(`window.copied = undefined`)
				tab.Click(selector)
				tab.Await(`window.copied !== undefined`)
				var copied string
				tab.Eval(`window.copied`, &copied)
				require.Equal(t, want, copied)
				tab.Await(`document.querySelector("` + selector + `").dataset.outcome === "Copied"`)
			}
		}
	})
	tab.Run("a long message is folded", func(t *testing.T) {
		const height = `document.querySelector(".bubble .plain").clientHeight`
		tab.Await(height + ` < 250`)
		tab.Click(".fold")
		tab.Await(height + ` > 1000 && document.querySelector(".fold").innerText === "Show less"`)
	})
	tab.Run("a rejected message is shown and sent again", func(t *testing.T) {
		require.Equal(t, []string{"And <b>now</b>?"}, tab.Text(".rejected-message .bubble"))
		require.Equal(t, []string{"Input rejected: _tag: missing"}, tab.Text(".system-message summary"), "other input stays folded JSON")
		tab.Click(`[data-key="edit-rejected"]`)
		tab.Await(`document.querySelector("#text").value === "And <b>now</b>?"`)
		tab.Do(`document.querySelector("#text").value = ""`)
		tab.Click(`[data-key="resend"]`)
		tab.Await(`document.querySelectorAll(".user-message").length === 2`)
		require.Equal(t, event.Body(event.UserMessage{Content: "And <b>now</b>?"}), last(l))
	})
	tab.Run("an error at the end is retried", func(t *testing.T) {
		tab.Await(`!document.querySelector("[data-key=retry]")`) // a message follows
		l.record(event.LLMRequestFailed{RequestID: "demo:r0002", Error: "unavailable", Retryable: true})
		tab.Await(`document.querySelector("[data-key=retry]").getBoundingClientRect().height < 30`) // one line
		tab.Click(`[data-key="retry"]`)
		l.await(t, func() bool { return len(l.sent) == 2 })
		require.Equal(t, event.Body(event.AnswerRequested{}), l.sent[1][0].Body)
	})
	tab.Run("a message behind a running answer waits", func(t *testing.T) {
		l.record(event.LLMRequestStarted{RequestID: "demo:r0003", Attempt: 1, ThroughEventID: eventID(7)}, event.TextDelta{RequestID: "demo:r0003", Attempt: 1, Delta: "Well", ThroughEventID: eventID(7)})
		tab.Await(`document.querySelector(".streaming") && document.querySelector("#status").textContent === "answering"`)
		l.record(event.UserMessage{Content: "Be brief"})
		tab.Await(`document.querySelector(".queued")?.closest(".entry").innerText.includes("Be brief")`)
		l.record(event.AssistantMessage{Content: "Well, yes.", RequestID: "demo:r0003", ThroughEventID: eventID(7)}, event.LLMRequestCompleted{RequestID: "demo:r0003", ThroughEventID: eventID(7)})
		tab.Await(`!document.querySelector(".queued")`)
	})
}

func last(l *log) event.Body {
	events, _, _ := l.Snapshot()
	return events[len(events)-1].Body
}

func TestPeopleSeeWhatTheirRolesAllow(t *testing.T) {
	browser := browsertest.Start(t)
	w, file := guarded(t, newLog(waiting()...), gateway.Options{})
	for role, want := range map[auth.Role][]string{
		auth.RoleRead:    {"menu-button", "export-events"},
		auth.RoleApprove: {"menu-button", "export-events", "waiting", "approve"},
		auth.RoleWrite:   {"new", "menu-button", "rename", "archive", "export-events", "edit-message", "regenerate", "composer"},
		auth.RoleAdmin:   {"new", "menu-button", "rename", "archive", "export-events", "delete", "edit-message", "regenerate", "waiting", "approve", "composer"},
	} {
		t.Run(string(role), func(t *testing.T) {
			token, _ := newToken(t, file, auth.Identity{Subject: string(role), Roles: []auth.Role{role}}, 0)
			tab := browser.Open(w.server.URL + "/#demo")
			tab.Await(`!document.querySelector("#sign-in").hidden`)
			tab.Type("#token", token+"\r")
			tab.Await(`document.querySelector(".tool-use") && document.querySelector("#status").textContent !== ""`)
			tab.Do(`document.querySelector("#menu").showPopover()`)
			var shown []string
			tab.Eval(`[...document.querySelectorAll("#new, #menu-button, #menu :is(#rename, #archive, #delete, #export-events), #composer, #waiting, [data-key]:is([data-key='edit-message'], [data-key='regenerate'], [data-key='approve'])")]
				.filter((e) => e.checkVisibility()).map((e) => e.dataset.key ?? e.id)`, &shown)
			require.ElementsMatch(t, want, shown)
			tab.Click("#sign-out")
			tab.Await(`!document.querySelector("#sign-in").hidden`)
		})
	}
}

func TestKeys(t *testing.T) {
	tab := show(t, newLog(event.UserMessage{Content: "Hi"}))
	tab.Do(`document.activeElement.blur()`)
	tab.Press("?")
	tab.Await(`keys.open`)
	tab.Press(kb.Escape)
	tab.Type("#text", "why?")
	tab.Await(`document.querySelector("#text").value === "why?" && !keys.open`)
	tab.PressWith(kb.ModifierCtrl, "/")
	tab.Await(`keys.open`)
	tab.Press(kb.Escape)
	tab.Do(`document.activeElement.blur()`)
	tab.Press("?")
	tab.Press("n" + kb.Escape)
	tab.Await(`!keys.open && location.hash === "#demo"`)
	tab.Press("n")
	tab.Await(`location.hash.startsWith("#chat-") && document.activeElement.id === "text"`)
	tab.Do(`location.hash = ""`)
	tab.Await(`document.querySelector("#welcome").offsetParent && document.querySelector("#head").offsetParent === null`)
	tab.Click("#begin")
	tab.Await(`location.hash.startsWith("#chat-")`)
}
