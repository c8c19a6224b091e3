package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/tool"
	"github.com/seed-9ed7edd4/chronicle/tool/mcp"
)

func log(bodies ...event.Body) (log []event.Event) {
	for i, body := range bodies {
		e := event.New(body)
		e.ID = event.FormatID("demo", i+1)
		e.ClientEventID = fmt.Sprint("k", i+1)
		log = append(log, e)
	}
	return log
}

func TestAcceptedInputIsInTheLogOnce(t *testing.T) {
	message := event.UserMessage{Content: "x"}
	recorded := log(message, event.InputRejected{Reason: "no"}, message)
	twice := append(recorded, recorded[2])
	forgotten := append(log(make([]event.Body, reducer.MaxRecent+1)...), recorded[0])
	for i := range forgotten[:reducer.MaxRecent+1] {
		forgotten[i].Body = message
	}
	for name, test := range map[string]struct {
		log    []event.Event
		input  input
		resets int
		want   string
	}{
		"recorded":                     {recorded, input{key: "k1", first: "k1", eventID: "demo:0001"}, 0, ""},
		"recorded later":               {recorded, input{key: "k1", first: "k1"}, 0, ""},
		"rejected":                     {recorded, input{key: "k2", first: "k2"}, 0, ""},
		"rejected with its array":      {recorded, input{key: "second", first: "k2"}, 0, ""},
		"lost by a termination":        {recorded, input{key: "gone", first: "gone", unsure: true}, 0, ""},
		"lost":                         {recorded, input{key: "gone", first: "gone"}, 0, "is not in the log"},
		"twice":                        {twice, input{key: "k3", first: "k3", eventID: "demo:0003"}, 0, "2 times"},
		"twice, and unsure":            {twice, input{key: "k3", first: "k3", unsure: true}, 0, "2 times"},
		"twice, after 1,000 others":    {forgotten, input{key: "k1", first: "k1", eventID: "demo:0001"}, 0, ""},
		"elsewhere":                    {recorded, input{key: "k1", first: "k1", eventID: "demo:0009"}, 0, "accepted as demo:0009"},
		"elsewhere, because of resets": {recorded, input{key: "k1", first: "k1", eventID: "demo:0009"}, 1, ""},
		"another note":                 {recorded, input{key: "k1", first: "k1", eventID: "demo:0001", note: &event.Note{}}, 0, "another event"},
	} {
		t.Run(name, func(t *testing.T) {
			err := (&target{accepted: []input{test.input}, resets: test.resets}).checkInputs(test.log)
			if test.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, test.want)
			}
		})
	}
}

func TestASecretInALogOfAProcessIsFound(t *testing.T) {
	dir := t.TempDir()
	require.ErrorContains(t, checkLogs(dir), "no process has a log")
	file := filepath.Join(dir, "worker-001.log")
	require.NoError(t, os.WriteFile(file, []byte("fine"), 0o600))
	require.NoError(t, checkLogs(dir))
	require.NoError(t, os.WriteFile(file, []byte("the key is "+secrets[1]), 0o600))
	require.ErrorContains(t, checkLogs(dir), "contains the secret")
}

// The steps of a seed must stay the same, however they are timed.
func TestASeedDeterminesTheSteps(t *testing.T) {
	names := func(seed uint64) (names []string) {
		o := options{seed: seed}
		for i := range 25 {
			names = append(names, o.choose(o.random(3, i)).name)
		}
		return names
	}
	require.Equal(t, names(1), names(1))
	require.NotEqual(t, names(1), names(2))
}

func TestTheHostileServerOffersItsTool(t *testing.T) {
	server := startServer()
	defer server.Close()
	servers, err := mcp.New(mcp.Options{Servers: []mcp.Server{{
		Name: "evil", URL: server.URL, Headers: map[string]string{"Authorization": "Bearer env:TOKEN"},
	}}, Getenv: func(string) string { return secrets[1] }, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	servers.Start()
	defer servers.Close()
	status := servers.Status(t.Context(), "evil")
	require.NoError(t, status.Error)
	require.NotZero(t, status.Tools)
	set, err := tool.NewSet(tool.Options{Sources: map[string]tool.Source{mcp.Prefix: servers}})
	require.NoError(t, err)
	for _, hostile := range results {
		arguments := json.RawMessage(fmt.Sprintf(`{"how":%q}`, hostile.name))
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		got := set.Call(ctx, activities.ToolCallRequest{Name: "mcp__evil__act", Arguments: arguments})
		cancel()
		require.Equal(t, hostile.name == "fine", string(got.Value) == `"fine"`, "%s: %.100s %.100s", hostile.name, got.Value, got.Error)
		require.NotContains(t, string(got.Value)+string(got.Error), secrets[1], hostile.name)
	}
}
