package agent_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/formats/agent"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

func FuzzAContextAcceptsTheEventsOfAnyLog(f *testing.F) {
	logs, err := filepath.Glob("testdata/*.jsonl")
	require.NoError(f, err)
	for _, log := range logs {
		text, err := os.ReadFile(log)
		require.NoError(f, err)
		f.Add(text)
	}
	for _, seed := range []string{
		"", "\n\r\n", "\ufeff{}", "{", "7", `"a"`, "null", "\x00\x00", "\xff{\"type\":\"error\",\"message\":\"\xff\"}", "\x1b[31m{}\x1b[0m",
		`{"type":"tool_call"}` + "\n" + `{"type":"tool_result"}`,
		`{"type":"tool_result","toolId":"Read","value":1}` + "\n" + `{"type":"tool_call","toolName":"Read"}`,
		`{"type":"tool_result","id":"a","value":1,"error":{"apiKey":"b"}}` + "\n" + `{"type":"tool_call","id":"a","parameters":{"X_API_KEY":null}}`,
		`{"type":"message","role":"user","text":"a","timestamp":-1e99}`,
		`{"type":"message","role":"user","text":"a","timestamp":"2026-01-02T15:04:05+14:00"}`,
		`{"type":"assistant","message":{"content":[{"type":"server_tool_use","id":"a","name":"\n"},{"type":"x"},{"type":"web_search_tool_result","tool_use_id":"a"}]}}`,
		`{"type":"user","uuid":"1","message":{"content":"<skill>a</skill>b<image/>"}}` + "\n" + `{"uuid":"1"}`,
		`{"type":"message","role":"user","text":"` + strings.Repeat("<system-reminder></system-reminder>", 2000) + `x</system-reminder>"}`,
		`{"type":"assistant","message":{"content":[{"type":"text","text":"a {"type":"x","uuid":"2"}` + "\n" + `b"}]}}`,
		`{"type":"response_item","payload":{"type":"web_search_call","action":"{}"}}` + "\n" + `{"payload":{"type":"x_output","call_id":"a"},"type":"response_item"}`,
		`{"type":"event_msg","payload":{"type":"user_message","message":" "}}`, `{"type":"response_item","payload":7}`,
		`{"type":"result","is_error":true,"usage":[],"total_cost_usd":1e300}`,
	} {
		f.Add([]byte(seed))
	}
	starts := map[agent.Format]string{
		agent.Claude: `{"type":"summary","leafUuid":"1"}`,
		agent.Codex:  `{"type":"session_meta","payload":{"id":"1"}}`,
		agent.Droid:  `{"type":"session_start","id":"1"}`,
	}
	require.Len(f, starts, len(agent.Formats()))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, err := range agent.Read(bytes.NewReader(data), "") {
			require.True(t, err == nil || errors.Is(err, agent.ErrUnrecognized), err)
		}
		for format, start := range starts {
			data := append([]byte(start+"\n"), data...)
			events := read(t, format, string(data))
			ids := map[string]bool{}
			for _, e := range events {
				require.True(t, e.Tag().IsInput())
				require.False(t, ids[e.ClientEventID], "two events with one id")
				ids[e.ClientEventID] = true
				line, err := e.MarshalJSON()
				require.NoError(t, err)
				require.LessOrEqual(t, len(line), agent.MaxEventBytes)
				var again event.Event
				require.NoError(t, again.UnmarshalJSON(line))
				require.Equal(t, e, again)
			}
			requireAccepted(t, events)

			var byteByByte []event.Event
			for e, err := range agent.Read(iotest.OneByteReader(bytes.NewReader(data)), format) {
				require.NoError(t, err)
				byteByByte = append(byteByByte, e)
			}
			require.Equal(t, events, byteByByte)
		}
	})
}

// requireAccepted checks that a session accepts the events without starting a request,
// and that no call stays open.
func requireAccepted(t require.TestingT, events []event.Event) {
	s := reducer.NewSession("demo")
	for _, e := range events {
		var effects []reducer.Effect
		s, effects = reducer.Step(s, reducer.Received{At: time.Unix(0, 0), Events: []event.Event{e}})
		require.Len(t, effects, 1)
		recorded := effects[0].(reducer.Record).Events
		require.Equal(t, e.Tag(), recorded[len(recorded)-1].Tag(), "%+v", recorded)
	}
	require.Empty(t, s.OpenToolCalls)
	require.Nil(t, s.Request)
}
