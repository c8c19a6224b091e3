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
	"github.com/seed-9ed7edd4/chronicle/gateway/page/browsertest"
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

func TestTheResultOfAQuestionWithOneFieldIsItsValue(t *testing.T) {
	const object = `{"type":"object","properties":{"question":{"type":"string"},"answer":`
	for name, test := range map[string]struct{ schema, arguments, entered, want string }{
		"a text of a tool without a schema": {``, `{"question":"Which?"}`, "7", `"7"`},
		"a number":                          {object + `{"type":"number"}}}`, `{"question":"Price?"}`, "2.50", `2.50`},
		"a choice":                          {object + `{"enum":["red",7]}}}`, `{"question":"Which?"}`, "7", `7`},
		"a schema of the arguments":         {`{}`, `{"message":"Sure?","requestedSchema":{"type":"boolean"}}`, "false", `false`},
		"fields of the arguments": {
			`{}`, `{"message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}`, "Ann", `{"name":"Ann"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLog(asking(test.schema, test.arguments)...)
			tab := show(t, l)
			tab.Await(`document.querySelector('[data-key="field0"]')`)
			tab.Do(fmt.Sprintf(`const e = document.querySelector('[data-key="field0"]'); e.value = %s; e.dispatchEvent(new Event("input"))`, toJSON(test.entered)))
			tab.Type(`[data-key="send"]`, "\r")
			tab.Await(answered)
			require.Equal(t, test.want, string(l.results()[0].Value))
		})
	}
}

func TestAQuestionIsDeclined(t *testing.T) {
	l := newLog(asking(question, `{"question":"Your PIN?"}`)...)
	tab := show(t, l)
	tab.Type(`[data-key="decline"]`, "\r")
	tab.Await(`document.activeElement.dataset.key === "reason"`)
	tab.Press("Private\r")
	tab.Await(answered)
	require.Equal(t, []event.ToolResult{{ToolCallID: "call_1", IsError: true, Error: toJSON("the user declined to answer: Private")}}, l.results())
}

func TestAQuestionIsAnsweredByASuggestionOrAsJSON(t *testing.T) {
	l := newLog(asking(question, `{"question":"Which?","options":["Red","Blue"]}`)...)
	tab := show(t, l)
	tab.Await(`document.querySelector(".choices")`)
	require.NotContains(t, tab.Text(".waiting .card")[0], `"Blue"`, "the suggestions are buttons")
	tab.Click(`[data-key="choice1"]`)
	tab.Await(`document.activeElement.matches("textarea") && document.activeElement.value === "Blue"`)
	tab.Type(`[data-key="json"]`, "\r")
	tab.Await(`document.activeElement.dataset.key === "json"`)
	tab.Press(`["Blue",7]`)
	tab.PressWith(kb.ModifierCtrl, kb.Enter)
	tab.Await(answered)
	require.Equal(t, `["Blue",7]`, string(l.results()[0].Value))
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
	open := func() *browsertest.Tab {
		tab := browsertest.Start(t).Open(w.server.URL + "/#demo")
		tab.Type(".call-form textarea", "Mine")
		return tab
	}
	first, sending, typing, watching := open(), open(), open(), browsertest.Start(t).Open(w.server.URL+"/#demo")
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

// A model writes the schema of the result, so any member can have any type.
func TestAMalformedSchemaOfAResultIsStillAForm(t *testing.T) {
	values := []string{`null`, `7`, `"x"`, `true`, `[]`, `[null]`, `{}`, `{"a":null}`}
	schemas := values
	for _, name := range []string{"properties", "required", "title", "description", "default", "minLength", "pattern"} {
		for _, value := range values {
			schemas = append(schemas,
				fmt.Sprintf(`{"type":"object",%q:%s}`, name, value),
				fmt.Sprintf(`{"type":"object","properties":{"a":{"type":"string"}},%q:%s}`, name, value),
				fmt.Sprintf(`{"type":"object","properties":{"a":{"type":"string",%q:%s},"b":%s}}`, name, value, value))
		}
	}
	for _, name := range []string{"type", "enum", "items"} {
		for _, value := range values {
			schemas = append(schemas, fmt.Sprintf(`{"type":"array",%q:%s}`, name, value), fmt.Sprintf(`{"type":"array","default":7,"items":{"type":"string",%q:%s}}`, name, value))
		}
	}
	l := newLog(asking(question, `{"question":"How many?","requestedSchema":{"type":"object","properties":null}}`)...)
	tab := show(t, l)
	tab.Await(`document.querySelector(".call-form [data-key='field0']")`)
	var failed []string
	tab.Eval(fmt.Sprintf(`import("./entry.js").then(({ build }) => %s.filter((schema) => [{ arguments: '{"requestedSchema":' + schema + "}" }, { schema: JSON.parse(schema) }].some((question, i) => {
		const { element } = build({ content: { content: "", entry_type: { type: "tool_use", tool_name: "ask_user", tool_call_id: "malformed " + i + schema, status: "pending_client", action_type: { action: "other" }, question } } });
		return element.querySelector(".call-form [data-key='field0']")?.form.textContent.includes("[object") !== false;
	})))`, toJSON(schemas)), &failed)
	require.Empty(t, failed)
}

func TestAnEntryThatCannotBeShownIsJSON(t *testing.T) {
	tab := show(t, newLog(event.UserMessage{Content: "Hi"}))
	var text string
	tab.Eval(`import("./entry.js").then(({ build }) => build({ content: { content: 7, entry_type: { type: "system_message", subtype: "hook" } } }).element.textContent)`, &text)
	require.Contains(t, text, "This entry cannot be shown")
	require.Contains(t, text, `"subtype": "hook"`)
}
