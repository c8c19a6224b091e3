package event_test

import (
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest"
)

// movedFields are the fields of an event and of its body with ids of events and requests.
func movedFields(body event.Body) []string {
	names := []string{"id", "parentEventId"}
	for _, field := range reflect.VisibleFields(reflect.TypeOf(body)) {
		if slices.Contains(strings.Split(field.Tag.Get("schema"), ","), "id") {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			names = append(names, name)
		}
	}
	return names
}

var idOfDemo = regexp.MustCompile(`^demo:(r?[0-9]{4,})$`)

func TestMovedToChangesOnlyIDs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := eventtest.Event().Draw(t, "event")
		before := fieldsOf(t, e)
		want := fieldsOf(t, e)
		want["contextName"] = "other"
		for _, name := range movedFields(e.Body) {
			if id, ok := want[name].(string); ok {
				want[name] = idOfDemo.ReplaceAllString(id, "other:$1")
			}
		}
		if change, ok := want["change"].(map[string]any); ok { // of a hook
			messages, _ := change["messages"].([]any)
			for _, m := range messages {
				message := m.(map[string]any)
				message["eventId"] = idOfDemo.ReplaceAllString(message["eventId"].(string), "other:$1")
			}
		}
		moved := e.MovedTo("other")
		require.Equal(t, want, fieldsOf(t, moved))
		require.Equal(t, before, fieldsOf(t, e), "MovedTo modified its receiver")
		require.Equal(t, event.Counter(e.ID), event.Counter(moved.ID))
		require.Equal(t, e, moved.MovedTo("demo"), "there and back")
		require.Equal(t, e, e.MovedTo("demo"), "to the same name")
	})
}

func TestMovedToKeepsForeignIDs(t *testing.T) {
	for _, id := range []string{
		"", "msg_7", "another:0001", "another:r0001", "demo", "demo:", "demo:1", "demo:00001", "demo:r1", "demo:r00001",
		"demo:x:0001", "x:demo:0001", "Demo:0001", "demo:0001 ",
	} {
		t.Run(id, func(t *testing.T) {
			e := event.New(event.AssistantMessage{RequestID: id, ThroughEventID: id})
			e.ID, e.ParentID, e.ContextName = id, id, "demo"
			want := e
			want.ContextName = "other"
			require.Equal(t, want, e.MovedTo("other"))
		})
	}
	t.Run("of a context without a name", func(t *testing.T) {
		e := event.New(event.ToolCall{MessageID: "demo:0001"})
		require.Equal(t, e.Body, e.MovedTo("other").Body)
	})
}

// TestEveryIDFieldIsMovedOrKept fails for a new id field until it is classified.
func TestEveryIDFieldIsMovedOrKept(t *testing.T) {
	stays := []string{"toolCallId", "providerId", "previousRunId"}
	for _, body := range event.Examples() {
		filled := reflect.New(reflect.TypeOf(body)).Elem()
		for i := range filled.NumField() {
			if filled.Field(i).Kind() == reflect.String {
				filled.Field(i).SetString("demo:0007")
			}
		}
		e := event.New(filled.Interface().(event.Body))
		e.ContextName = "demo"
		moved := reflect.ValueOf(e.MovedTo("other").Body)
		for i := range filled.NumField() {
			name, _, _ := strings.Cut(filled.Type().Field(i).Tag.Get("json"), ",")
			isMoved := filled.Field(i).Kind() == reflect.String && moved.Field(i).String() == "other:0007"
			require.Equal(t, slices.Contains(movedFields(body), name), isMoved, "%s.%s", body.Tag(), name)
			if strings.HasSuffix(name, "Id") {
				require.True(t, isMoved || slices.Contains(stays, name), "%s.%s is not classified", body.Tag(), name)
			}
		}
	}
}

func fieldsOf(t require.TestingT, e event.Event) map[string]any {
	data, err := e.MarshalJSON()
	require.NoError(t, err)
	var fields map[string]any
	require.NoError(t, json.Unmarshal(data, &fields))
	return fields
}
