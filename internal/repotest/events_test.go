package repotest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/reducer/transcript"
	"github.com/seed-9ed7edd4/chronicle/starter/show"
)

// handled says what each event changes. A new tag fails the test until it has a row here and
// an example in eventtest, and until each place handles it as the row says.
var handled = map[event.Tag]struct {
	// model is the part of reducer.ReducedContext that the event changes; "" for none.
	model string
	// session reports whether the event changes the state of a session besides that.
	session bool
	// entry reports whether the transcript for people shows the event.
	entry bool
	// logged reports whether the worker logs the event with a message of its own, not as
	// "event recorded".
	logged bool
}{
	event.TagSystemPrompt:          {model: "Messages", entry: true},
	event.TagUserMessage:           {model: "Messages", session: true, entry: true},
	event.TagAssistantMessage:      {model: "Messages", entry: true},
	event.TagFileAttachment:        {model: "PendingAttachments"}, // shown with its message
	event.TagToolCall:              {model: "Messages", session: true, entry: true, logged: true},
	event.TagToolResult:            {model: "Messages", session: true, entry: true, logged: true},
	event.TagNote:                  {entry: true},
	event.TagSetRetryConfig:        {model: "Config", entry: true, logged: true},
	event.TagSetProviderConfig:     {model: "Config", entry: true, logged: true},
	event.TagSetTimeout:            {model: "Config", entry: true, logged: true},
	event.TagSetDeliveryPolicy:     {model: "Config", entry: true, logged: true},
	event.TagSetRequestSettings:    {model: "Config", entry: true, logged: true},
	event.TagSetTools:              {model: "Config", entry: true, logged: true},
	event.TagBudgetSet:             {model: "Config", entry: true, logged: true},
	event.TagSetCompaction:         {model: "Config", entry: true, logged: true},
	event.TagApprovalDecided:       {model: "Messages", session: true, entry: true, logged: true},
	event.TagSessionStarted:        {session: true, entry: true, logged: true},
	event.TagSessionEnded:          {session: true, entry: true, logged: true},
	event.TagLLMRequestStarted:     {session: true, logged: true},
	event.TagLLMRequestCompleted:   {session: true, entry: true, logged: true},
	event.TagLLMRequestInterrupted: {session: true, entry: true, logged: true},
	event.TagLLMRequestFailed:      {session: true, entry: true, logged: true},
	event.TagLLMRequestFellBack:    {session: true, entry: true, logged: true},
	event.TagLLMAttemptEnded:       {session: true, logged: true},
	event.TagBudgetExceeded:        {logged: true}, // the failure of the request is shown
	event.TagToolsOffered:          {session: true},
	event.TagApprovalRequested:     {session: true, entry: true, logged: true},
	event.TagHookApplied:           {entry: true, logged: true},
	event.TagCompacted:             {model: "Messages", session: true, entry: true, logged: true},
	event.TagContentRefused:        {model: "Refused", session: true, entry: true, logged: true},
	event.TagInputRejected:         {entry: true, logged: true},
	event.TagTextDelta:             {entry: true}, // never recorded, so no session folds it
	event.TagReasoningDelta:        {entry: true}, // as above
	event.TagToolProgress:          {entry: true}, // never recorded, so no session folds it
}

func TestEveryEventIsHandledEverywhere(t *testing.T) {
	examples := map[event.Tag]event.Body{}
	for _, body := range eventtest.Examples() {
		examples[body.Tag()] = body
	}
	rows := eventRows(t)
	schemas := openAPISchemas(t)
	lines := linesOfTheLog(t)
	for _, tag := range event.Tags() {
		t.Run(string(tag), func(t *testing.T) {
			want, ok := handled[tag]
			require.True(t, ok, "add a row to handled")
			body, ok := examples[tag]
			require.True(t, ok, "add an example to eventtest.Examples")
			require.NoError(t, event.New(body).Validate())

			assert.Equal(t, want.model, foldedPart(body), "reducer.Reduce")
			assert.Equal(t, want.session, changesSession(body), "reducer.Load")
			assert.Equal(t, want.entry, isShown(body), "transcript.Patcher")

			if tag.Class() != event.ClassEphemeral {
				require.Contains(t, lines, tag, "workflows/testdata/lines.golden")
			}
			assert.Equal(t, want.logged, lines[tag], "workflows/log.go")

			subject, _ := show.Words(body)
			assert.NotContains(t, subject, string(tag), "starter/show.Words has no case")

			row := rows[tag]
			require.NotEmpty(t, row, "docs/events.md has no row or sentence that begins with the tag")
			name := strings.TrimSuffix(string(tag), "Event")
			require.Contains(t, schemas, name, "gateway/openapi.json")
			for _, field := range jsonFields(body) {
				assert.Contains(t, row, "`"+field+"`", "docs/events.md")
				assert.Contains(t, schemas[name].Properties, field, "gateway/openapi.json")
			}
		})
	}
	assert.Len(t, handled, len(event.Tags()))
	assert.Len(t, eventtest.Examples(), len(event.Tags()))
}

// before is the log that the examples follow.
func before() []event.Event {
	return placed(1,
		event.UserMessage{Content: "Hello"},
		event.AssistantMessage{Content: "Hi", ThroughEventID: "demo:0001"},
		event.LLMRequestStarted{RequestID: "demo:r0001", ThroughEventID: "demo:0001", Attempt: 1},
		event.ToolCall{ToolCallID: "call_0", MessageID: "demo:0002", ToolName: "weather", RequestID: "demo:r0001"},
		event.ApprovalRequested{ToolCallID: "call_0", RequestID: "demo:r0001", ExpiresAt: eventtest.Epoch.Add(time.Hour)},
	)
}

func placed(first int, bodies ...event.Body) []event.Event {
	events := make([]event.Event, len(bodies))
	for i, body := range bodies {
		events[i] = event.Event{ID: event.FormatID("demo", first+i), ContextName: "demo", Timestamp: eventtest.Epoch, Body: body}
	}
	return events
}

// foldedPart returns the field of the reduced context that a body changes; "" for none.
func foldedPart(body event.Body) string {
	log := before()
	one := reflect.ValueOf(reducer.Reduce(reducer.Initial(), log...))
	two := reflect.ValueOf(reducer.Reduce(reducer.Initial(), append(log, placed(len(log)+1, body)...)...))
	var changed []string
	for i := range one.NumField() {
		if !reflect.DeepEqual(one.Field(i).Interface(), two.Field(i).Interface()) {
			changed = append(changed, one.Type().Field(i).Name)
		}
	}
	return strings.Join(changed, ", ")
}

func changesSession(body event.Body) bool {
	load := func(events []event.Event) reducer.Session {
		s := reducer.Load("demo", reducer.Reduce, events...)
		s.EventCount, s.Reduced = 0, reducer.Initial()
		return s
	}
	log := before()
	return !reflect.DeepEqual(load(log), load(append(log, placed(len(log)+1, body)...)))
}

func isShown(body event.Body) bool {
	p := transcript.NewPatcher()
	log := before()
	for _, e := range log {
		p.Apply(e)
	}
	e := placed(len(log)+1, body)[0]
	if e.Tag().Class() == event.ClassEphemeral {
		e.ID = ""
	}
	return len(p.Apply(e)) > 0
}

// eventRows returns the row of a table, or the paragraph, that begins with each tag.
func eventRows(t *testing.T) map[event.Tag]string {
	text := documents(t)[filepath.Join("docs", "events.md")]
	blocks := slices.Concat(strings.Split(text, "\n"), strings.Split(text, "\n\n"))
	rows := map[event.Tag]string{}
	for _, tag := range event.Tags() {
		for _, block := range blocks {
			if strings.HasPrefix(strings.TrimPrefix(block, "| "), "`"+string(tag)+"`") {
				rows[tag] = block
			}
		}
	}
	return rows
}

// linesOfTheLog says for each recorded event whether its line has a message of its own.
func linesOfTheLog(t *testing.T) map[event.Tag]bool {
	data, err := os.ReadFile(filepath.Join("workflows", "testdata", "lines.golden"))
	require.NoError(t, err)
	own := map[event.Tag]bool{}
	for line := range strings.Lines(string(data)) {
		tag, rest, _ := strings.Cut(line, " ")
		own[event.Tag(tag)] = !strings.Contains(rest, " event recorded ")
	}
	return own
}

type schema struct {
	Properties map[string]json.RawMessage `json:"properties"`
}

func openAPISchemas(t *testing.T) map[string]schema {
	data, err := os.ReadFile(filepath.Join("gateway", "openapi.json"))
	require.NoError(t, err)
	var spec struct {
		Components struct {
			Schemas map[string]schema `json:"schemas"`
		} `json:"components"`
	}
	require.NoError(t, json.Unmarshal(data, &spec))
	return spec.Components.Schemas
}

func jsonFields(body event.Body) (names []string) {
	for _, field := range reflect.VisibleFields(reflect.TypeOf(body)) {
		if field.Anonymous {
			continue // its fields are visible, too
		}
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}
