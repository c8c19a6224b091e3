package repotest

import (
	"fmt"
	"go/constant"
	"go/types"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest/golden"
	"github.com/seed-9ed7edd4/chronicle/internal/describe"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/reducer/transcript"
)

// TestEveryEventIsFolded shows which folds handle an event: the part of the context for the model that it changes, the
// session, and the transcript. A new event that one of them ignores is a difference in the golden file without that word.
func TestEveryEventIsFolded(t *testing.T) {
	var printed strings.Builder
	for _, body := range event.Examples() {
		require.NoError(t, event.New(body).Validate())
		folds := []string{string(body.Tag())}
		if part := foldedPart(body); part != "" {
			folds = append(folds, "model:"+part)
		}
		if changesSession(body) {
			folds = append(folds, "session")
		}
		if isShown(body) {
			folds = append(folds, "transcript")
		}
		fmt.Fprintln(&printed, strings.Join(folds, " "))
	}
	golden.File(t, filepath.Join("internal", "repotest", "testdata", "events.golden"), printed.String())
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

// TestEventsAreDocumented compares the tables of docs/events.md with the types of the events; -update writes them.
func TestEventsAreDocumented(t *testing.T) {
	source, err := describe.Load(".", "event")
	require.NoError(t, err)
	file := filepath.Join("docs", "events.md")
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	text := string(data)
	headers := map[event.Class]string{
		event.ClassInput:     "| event | fields | effect on the messages for the model |",
		event.ClassLifecycle: "| event | fields | recorded |",
		event.ClassEphemeral: "| event | fields | meaning |",
	}
	path := reflect.TypeFor[event.Event]().PkgPath()
	for class, header := range headers {
		var rows []string
		for _, tag := range event.Tags() {
			if tag.Class() == class {
				rows = append(rows, eventRow(t, source, source.Named(path, strings.TrimSuffix(string(tag), "Event"))))
			}
		}
		text = withRows(t, text, header, rows)
	}
	var kinds []string
	for _, kind := range describe.Constants(source.Named(path, "FailureKind")) {
		meaning := source.Doc(kind, nil)
		require.NotEmpty(t, meaning, kind)
		kinds = append(kinds, "| `"+constant.StringVal(kind.Val())+"` | "+strings.ToLower(meaning[:1])+meaning[1:]+" |")
	}
	golden.File(t, file, withRows(t, text, "| kind | meaning |", kinds))
}

func eventRow(t *testing.T, source *describe.Source, body *types.Named) string {
	effects := source.Directives(body, "//doc:effect ")
	require.Len(t, effects, 1, "%s needs one //doc:effect", body)
	var fields []string
	structure := body.Underlying().(*types.Struct)
	for i := range structure.NumFields() {
		name, option, _ := strings.Cut(reflect.StructTag(structure.Tag(i)).Get("json"), ",")
		switch {
		case structure.Field(i).Embedded():
			fields = append(fields, "the [usage](#attempts-and-their-usage)")
		case option == "":
			fields = append(fields, "`"+name+"`")
		default:
			fields = append(fields, "`"+name+"`?")
		}
	}
	return "| `" + body.Obj().Name() + "Event` | " + strings.Join(fields, ", ") + " | " + effects[0] + " |"
}

// withRows replaces the rows of the table with a header.
func withRows(t *testing.T, text, header string, rows []string) string {
	before, rest, ok := strings.Cut(text, header+"\n")
	require.True(t, ok, "docs/events.md has no table with the header %s", header)
	divider, rest, _ := strings.Cut(rest, "\n")
	_, after, _ := strings.Cut("\n"+rest, "\n\n")
	return before + header + "\n" + divider + "\n" + strings.Join(rows, "\n") + "\n\n" + after
}
