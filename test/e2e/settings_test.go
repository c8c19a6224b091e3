package e2e

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
)

// parameters returns the fields of a request that settings can change.
func parameters(t *testing.T, r llmtest.Request) string {
	t.Helper()
	var fields map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(r.Body, &fields))
	for _, name := range []string{"messages", "model", "stream", "stream_options"} {
		delete(fields, name)
	}
	data, err := json.Marshal(fields)
	require.NoError(t, err)
	return string(data)
}

func TestAMessageOverridesTheRequestSettingsOfItsContext(t *testing.T) {
	w := newWorld(t, llmtest.Answer("One"), llmtest.Answer("Two"), llmtest.Answer("Three"), llmtest.Answer("Four"))
	w.worker()
	c := w.open("parameters")
	w.say(c, "First", event.New(event.SetRequestSettings{
		Temperature: new(0.0), Stop: []string{"END"}, Extra: event.Object(`{"top_k":40}`), Labels: map[string]string{"user": "u-17"},
	}))
	for e, err := range c.Ask(w.ctx, event.New(event.UserMessage{
		Content: "Second", Settings: &event.RequestSettings{Stop: []string{"STOP"}, Seed: new(int64(7)), Extra: event.Object(`{}`)},
	})) {
		require.NoError(t, err)
		require.NotEqual(t, event.TagLLMRequestFailed, e.Tag())
	}
	w.say(c, "Third")
	state, err := c.State(w.ctx)
	require.NoError(t, err)
	require.Equal(t, []string{"END"}, state.Config.Request.Stop)
	w.say(c, "Fourth", event.New(event.SetRequestSettings{}))

	sent := w.model.Requests()
	ofContext := `{"temperature":0,"stop":["END"],"top_k":40,"user":"u-17"}`
	require.JSONEq(t, ofContext, parameters(t, sent[0]))
	require.JSONEq(t, `{"temperature":0,"stop":["STOP"],"seed":7,"user":"u-17"}`, parameters(t, sent[1]))
	require.JSONEq(t, ofContext, parameters(t, sent[2]))
	require.JSONEq(t, `{}`, parameters(t, sent[3]))
	w.replay(c, "")
}
