package reducer_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// The value of Seed shows the source of the settings: 1 for the context, 2 and 3 for messages.
func TestSettingsOfTheNextRequest(t *testing.T) {
	seed := func(n int64) event.RequestSettings { return event.RequestSettings{Seed: &n} }
	ask := func(settings *event.RequestSettings) event.Body {
		return event.UserMessage{Content: "x", Settings: settings}
	}
	two, three := seed(2), seed(3)
	set := event.SetRequestSettings{Seed: new(int64(1)), TopP: new(0.5)}
	started := event.LLMRequestStarted{RequestID: "demo:r0001", ThroughEventID: "demo:0002", Attempt: 1}
	completed := event.LLMRequestCompleted{RequestID: "demo:r0001", FinishReason: "stop"}
	for name, test := range map[string]struct {
		log  []event.Body
		want event.RequestSettings
	}{
		"none":                                   {nil, event.RequestSettings{}},
		"of the context":                         {[]event.Body{set, ask(nil)}, event.RequestSettings(set)},
		"of the message, field by field":         {[]event.Body{set, ask(&two)}, event.RequestSettings{Seed: new(int64(2)), TopP: new(0.5)}},
		"of a message before those of a context": {[]event.Body{ask(&two), set}, event.RequestSettings{Seed: new(int64(2)), TopP: new(0.5)}},
		"of the newest message":                  {[]event.Body{ask(&two), ask(&three)}, three},
		"of the newest message, which has none":  {[]event.Body{set, ask(&two), ask(nil)}, event.RequestSettings(set)},
		"of the newest message that requires an answer": {
			[]event.Body{ask(&two), event.UserMessage{Content: "x", TriggersTurn: new(false), Settings: &three}}, two,
		},
		"of a message that is being answered": {[]event.Body{set, ask(&two), started}, event.RequestSettings{Seed: new(int64(2)), TopP: new(0.5)}},
		"not of an answered message":          {[]event.Body{set, ask(&two), started, completed}, event.RequestSettings(set)},
		"of a message behind the answer":      {[]event.Body{set, ask(nil), started, ask(&three), completed}, event.RequestSettings{Seed: new(int64(3)), TopP: new(0.5)}},
	} {
		t.Run(name, func(t *testing.T) {
			s := reducer.Load("demo", reducer.Reduce, numbered(1, test.log...)...)
			require.Equal(t, test.want, reducer.SettingsOf(s))
		})
	}
}

func TestSettingsSurviveJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := eventtest.Log("demo").Draw(t, "log")
		at := rapid.IntRange(0, len(log)).Draw(t, "at")
		data, err := json.Marshal(reducer.Load("demo", reducer.Reduce, log[:at]...))
		require.NoError(t, err)
		var read reducer.Session
		require.NoError(t, json.Unmarshal(data, &read))
		require.Equal(t, reducer.SettingsOf(reducer.Load("demo", reducer.Reduce, log[:at]...)), reducer.SettingsOf(read))
	})
}

func TestACancelledMessageLeavesNoSettings(t *testing.T) {
	s := reducer.NewSession("demo")
	step := func(in reducer.Input) { s, _ = reducer.Step(s, in) }
	step(reducer.Opened{At: eventtest.Epoch})
	step(reducer.Received{At: eventtest.Epoch, Events: []event.Event{
		event.New(event.UserMessage{Content: "x", Settings: &event.RequestSettings{Seed: new(int64(2))}}),
	}})
	require.Equal(t, event.RequestSettings{Seed: new(int64(2))}, reducer.SettingsOf(s))
	step(reducer.InterruptAsked{At: eventtest.Epoch})
	require.Zero(t, s.TriggerSettings)
	require.Zero(t, reducer.SettingsOf(s))
}
