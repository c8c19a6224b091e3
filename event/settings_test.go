package event_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest"
)

func TestEachSetFieldOverrides(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		settings := rapid.Map(eventtest.Of[event.SetRequestSettings](), func(b event.SetRequestSettings) event.RequestSettings { return event.RequestSettings(b) })
		one, other := settings.Draw(t, "one"), settings.Draw(t, "other")
		got := reflect.ValueOf(one.Override(other))
		for i := range got.NumField() {
			want := reflect.ValueOf(other).Field(i)
			if want.IsZero() {
				want = reflect.ValueOf(one).Field(i)
			}
			require.Equal(t, want.Interface(), got.Field(i).Interface(), got.Type().Field(i).Name)
		}
	})
}

func TestTheExampleSetsEveryField(t *testing.T) {
	for _, body := range event.Examples() {
		if settings, ok := body.(event.SetRequestSettings); ok {
			value := reflect.ValueOf(settings)
			for i := range value.NumField() {
				require.False(t, value.Field(i).IsZero(), value.Type().Field(i).Name)
			}
		}
	}
}

func TestNamesOfASchemaKeepTheirOrder(t *testing.T) {
	schema := `{"type":"object","properties":{"zeta":{"type":"string"},"alpha":{"type":"integer"}}}`
	for _, input := range []string{
		`{"_tag":"SetRequestSettingsEvent","responseFormat":{"type":"json_schema","schema":` + schema + `}}`,
		`{"_tag":"UserMessageEvent","content":"Hello","settings":{"extra":` + schema + `}}`,
	} {
		events, err := event.DecodeInput([]byte(strings.ReplaceAll(input, ":", ": ")))
		require.NoError(t, err)
		data, err := events[0].MarshalJSON()
		require.NoError(t, err)
		require.Contains(t, string(data), schema)
	}
}

func TestObjectsAreNotNestedTooDeep(t *testing.T) {
	for depth, isValid := range map[int]bool{100: true, 101: false} {
		object := event.Object(strings.Repeat(`{"not":`, depth-1) + "{}" + strings.Repeat("}", depth-1))
		err := event.New(event.SetRequestSettings{ResponseFormat: &event.ResponseFormat{Type: event.FormatJSONSchema, Schema: object}}).Validate()
		if isValid {
			require.NoError(t, err)
			continue
		}
		require.EqualError(t, err, "SetRequestSettingsEvent.responseFormat.schema: nested more than 100 levels deep")
	}
}
