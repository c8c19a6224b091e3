package gateway_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
	"github.com/seed-9ed7edd4/chronicle/gateway/page"
	"github.com/seed-9ed7edd4/chronicle/internal/browsertest"
)

// asking is a turn whose call waits for the result of a client.
func asking(schema, arguments string) []event.Body {
	return []event.Body{
		event.SetTools{Tools: event.ToolList{{Name: "ask_user", Description: "Ask the guest", Parameters: event.Object(schema)}}},
		event.UserMessage{Content: "Book a table"}, toolStarted(1, 2), event.AssistantMessage{RequestID: toolRequest, ThroughEventID: eventID(2)},
		toolCall("call_1", "ask_user", arguments), stepEnded(1, event.Usage{}),
	}
}

const question = `{"type":"object","properties":{"question":{"type":"string"}},"required":["question"]}`

func (l *log) results() (results []event.ToolResult) {
	events, _, _ := l.Snapshot()
	for _, e := range events {
		if body, ok := e.Body.(event.ToolResult); ok {
			results = append(results, body)
		}
	}
	return results
}

const answered = `document.querySelector(".tool-use .status:is(.success, .failed)") && !document.querySelector(".call-form")`

func TestAQuestionIsAnsweredByKeyboard(t *testing.T) {
	l := newLog(asking(question, `{"question":"Which <b>day</b>?"}`)...)
	tab := show(t, l)
	tab.Await(`document.querySelector("#waiting p").innerText === "ask_user waits for your answer"`)
	require.Equal(t, []string{"waiting for an answer"}, tab.Text("#status"))
	tab.Await(`document.querySelector("#list a.waiting[href='#demo'] .details")?.textContent.startsWith("waiting")`)
	require.Equal(t, []string{"Which <b>day</b>?"}, tab.Text(".asked"))
	require.Equal(t, []string{"ask_user  waiting for an answer"}, cards(tab))
	tab.Reload()
	tab.Await(`document.querySelector(".call-form") && document.activeElement.id === "text"`)

	tabTo(t, tab, kb.ModifierShift, "#waiting button")
	tab.Press(kb.Enter)
	tab.Await(`document.activeElement.matches(".call-form textarea") && document.activeElement.labels[0].innerText === "Answer"`)
	tab.Press("\r")
	tab.Await(`document.querySelector(".problem").innerText === "Answer: missing" && document.activeElement.getAttribute("aria-invalid") === "true"`)
	require.Empty(t, l.results())
	tab.Press("Friday")
	tab.PressWith(kb.ModifierShift, kb.Enter)
	tab.Press("or Monday")
	tab.Press(kb.Escape)
	require.Empty(t, l.calls, "Escape in the form must not stop the answer")
	tab.Press(kb.Enter)
	tab.Await(answered)
	require.Equal(t, []event.ToolResult{{ToolCallID: "call_1", Value: json.RawMessage(`"Friday\nor Monday"`)}}, l.results())
	tab.Await(`document.querySelector("#waiting").hidden && document.activeElement.matches(".tool-use summary")`)
	tab.Await(`!document.querySelector(".problem")`)
}

func TestTheFormOfAQuestionFollowsTheSchemaOfTheTool(t *testing.T) {
	const schema = `{"type":"object","required":["question","people","day"],"properties":{
		"question":{"type":"string"},
		"people":{"type":"integer","minimum":1,"maximum":9007199254740999,"title":"Number of people"},
		"deposit":{"type":["number","null"]},
		"day":{"enum":["Fri","Sat",null,7]},
		"outside":{"type":"boolean","default":true},
		"name":{"type":"string","minLength":2,"pattern":"^[A-Z]","description":"As on the card"},
		"dishes":{"type":"array","items":{"type":"string"},"maxItems":2},
		"extras":{"type":"object"}}}`
	l := newLog(asking(schema, `{"question":"What do you need?"}`)...)
	tab := show(t, l)
	tab.Await(`document.querySelector(".call-form")`)
	var labels []string
	tab.Eval(`[...document.querySelectorAll(".call-form label")].map((e) => [...e.querySelectorAll("span")].map((s) => s.textContent).join("|") + "|" + e.lastChild.localName)`, &labels)
	require.Equal(t, []string{
		"Number of people|textarea", "deposit (optional)|textarea", "day|select", "outside (optional)|select", "name (optional)|As on the card|textarea",
		"dishes (optional)|One per line|textarea", "extras (optional)|JSON|textarea",
	}, labels)

	fill := func(field int, value string) {
		tab.Do(fmt.Sprintf(`const e = document.querySelector('[data-key="field%d"]'); e.value = %s; e.dispatchEvent(new Event("input"))`, field, toJSON(value)))
	}
	fill(0, "4")
	fill(2, `"Sat"`)
	for _, test := range []struct {
		field          int
		value, problem string
	}{
		{0, "", "Number of people: missing"},
		{0, "many", "Number of people: not a number"},
		{0, "1.5", "Number of people: not a whole number"},
		{0, "0", "Number of people: at least 1"},
		{2, "", "day: missing"},
		{1, "1,5", "deposit: not a number"},
		{4, "A", "name: at least 2 characters"},
		{4, "ann", "name: must match ^[A-Z]"},
		{5, "a\nb\nc", "dishes: at most 2 lines"},
		{6, "{", "extras: not valid JSON"},
	} {
		var before string
		tab.Eval(fmt.Sprintf(`document.querySelector('[data-key="field%d"]').value`, test.field), &before)
		fill(test.field, test.value)
		tab.Type(`[data-key="send"]`, "\r")
		tab.Await(fmt.Sprintf(`document.querySelector(".problem").innerText.startsWith(%q) && document.activeElement.dataset.key === "field%d"`, test.problem, test.field))
		var invalid []string
		tab.Eval(`[...document.querySelectorAll('[aria-invalid="true"]')].map((e) => e.dataset.key)`, &invalid)
		require.Equal(t, []string{fmt.Sprintf("field%d", test.field)}, invalid)
		fill(test.field, before)
	}
	require.Empty(t, l.results())

	// An update of the card keeps what was entered.
	fill(0, "9007199254740993")
	fill(5, "soup\n\n pie ")
	fill(6, `{"dog":1.0000000000000000001}`)
	l.record(event.ToolProgress{RequestID: toolRequest, ToolCallID: "call_1", Text: "asking"})
	tab.Await(`document.querySelector(".progress") && document.querySelector('[data-key="field5"]').value.startsWith("soup")`)
	tab.Type(`[data-key="send"]`, "\r")
	tab.Await(answered)
	require.Equal(t, `{"day":"Sat","dishes":["soup","pie"],"extras":{"dog":1.0000000000000000001},"outside":true,"people":9007199254740993}`,
		string(l.results()[0].Value))
}

// Each step answers another call on the same page.
func TestQuestionsAreAnswered(t *testing.T) {
	l := newLog(event.UserMessage{Content: "Book a table"})
	tab := show(t, l)
	ask := func(name, schema, arguments string, answer func(t *testing.T), want event.ToolResult) {
		tab.Run(name, func(t *testing.T) {
			n := len(l.results())
			want.ToolCallID = fmt.Sprintf("call_%d", n+1)
			l.record(event.SetTools{Tools: event.ToolList{{Name: "ask_user", Description: "Ask the guest", Parameters: event.Object(schema)}}},
				toolCall(want.ToolCallID, "ask_user", arguments))
			tab.Await(`document.querySelector(".call-form")`)
			answer(t)
			tab.Await(fmt.Sprintf(`document.querySelectorAll(".tool-use .status:is(.success, .failed)").length === %d && !document.querySelector(".call-form")`, n+1))
			require.Equal(t, want, l.results()[n])
		})
	}
	field := func(value string) func(*testing.T) {
		return func(*testing.T) {
			tab.Do(fmt.Sprintf(`const e = document.querySelector('[data-key="field0"]'); e.value = %s; e.dispatchEvent(new Event("input"))`, toJSON(value)))
			tab.Type(`[data-key="send"]`, "\r")
		}
	}
	value := func(json string) event.ToolResult { return event.ToolResult{Value: []byte(json)} }
	const object = `{"type":"object","properties":{"question":{"type":"string"},"answer":`
	ask("a text of a tool without a schema", ``, `{"question":"Which?"}`, field("7"), value(`"7"`))
	ask("a number", object+`{"type":"number"}}}`, `{"question":"Price?"}`, field("2.50"), value(`2.50`))
	ask("a choice", object+`{"enum":["red",7]}}}`, `{"question":"Which?"}`, field("7"), value(`7`))
	ask("a schema of the arguments", `{}`, `{"message":"Sure?","requestedSchema":{"type":"boolean"}}`, field("false"), value(`false`))
	ask("fields of the arguments", `{}`, `{"message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}`, field("Ann"), value(`{"name":"Ann"}`))
	ask("a refusal", question, `{"question":"Your PIN?"}`, func(t *testing.T) {
		tab.Type(`[data-key="decline"]`, "\r")
		tab.Await(`document.activeElement.dataset.key === "reason"`)
		tab.Press("Private\r")
	}, event.ToolResult{IsError: true, Error: toJSON("the user declined to answer: Private")})
	ask("a suggestion that is edited as JSON", question, `{"question":"Which?","options":["Red","Blue"]}`, func(t *testing.T) {
		require.NotContains(t, tab.Text(".waiting .card")[0], `"Blue"`, "the suggestions are buttons")
		tab.Click(`[data-key="choice1"]`)
		tab.Await(`document.activeElement.matches("textarea") && document.activeElement.value === "Blue"`)
		tab.Type(`[data-key="json"]`, "\r")
		tab.Await(`document.activeElement.dataset.key === "json"`)
		tab.Press(`["Blue",7]`)
		tab.PressWith(kb.ModifierCtrl, kb.Enter)
	}, value(`["Blue",7]`))
	const turned = "bank\u202eknab\u202c "
	ask("hidden characters are shown and kept", question, "{\"question\":\"Who\u2067?\",\"options\":[\""+turned+"\"]}", func(t *testing.T) {
		require.Equal(t, []string{`Who\u2067?`}, tab.Text(".asked"))
		require.Equal(t, []string{`bank\u202eknab\u202c`}, tab.Text(`[data-key="choice0"]`))
		tab.Type(`[data-key="choice0"]`, "\r")
		tab.Await(`document.activeElement.matches("textarea")`)
		var text string
		tab.Eval(`document.activeElement.value`, &text)
		require.Equal(t, `bank\u202eknab\u202c `, text)
		tab.Press("\r")
	}, value(`"`+turned+`"`))
}

func TestTheFirstAnswerWinsAndTheOtherBrowserIsTold(t *testing.T) {
	l := newLog(asking(question, `{"question":"Which?"}`)...)
	hold := make(chan struct{})
	l.send = func(events []event.Event) (client.Receipt, error) {
		<-hold
		if len(l.results()) > 0 {
			return client.Receipt{}, fmt.Errorf("%w: the tool call has a result already", client.ErrRefused)
		}
		l.record(events[0].Body)
		return client.Receipt{ClientEventIDs: []string{events[0].ClientEventID}}, nil
	}
	w := serve(t, fakeClient{log: l}, gateway.Options{Page: page.Handler()})
	// A browser has at most six connections to a host.
	watching := browsertest.Start(t).Open(strings.Replace(w.server.URL, "127.0.0.1", "localhost", 1) + "/#demo")
	open := func() *browsertest.Tab {
		tab := browsertest.Start(t).Open(w.server.URL + "/#demo")
		tab.Type(".call-form textarea", "Mine")
		return tab
	}
	first, sending, typing := open(), open(), open()
	watching.Await(`document.querySelector(".call-form")`)
	for _, tab := range []*browsertest.Tab{first, sending} {
		tab.Press("\r")
		tab.Await(`document.querySelector(".until").innerText === "Sending…"`)
	}
	l.await(t, func() bool { return len(l.sent) == 2 })
	hold <- struct{}{}
	first.Await(answered)
	const told = `document.querySelector("details[open] .problem")?.innerText === "Another client was faster. What you entered was not sent."`
	typing.Await(answered + ` && ` + told)
	sending.Await(answered)
	hold <- struct{}{}
	sending.Await(told)
	watching.Await(answered)
	for _, tab := range []*browsertest.Tab{first, watching} {
		require.Empty(t, strings.Join(tab.Text(".problem"), ""))
	}
	require.Len(t, l.results(), 1)
}
