package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
)

// found returns the ids of the messages that a gateway finds.
func (w *world) found(gateway, text string) (ids []string) {
	w.t.Helper()
	response, err := http.Get(gateway + "/search?limit=1000&q=" + url.QueryEscape(text))
	require.NoError(w.t, err)
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	require.NoError(w.t, err)
	require.Equal(w.t, http.StatusOK, response.StatusCode, string(data))
	var page struct{ Hits []struct{ EventID string } }
	require.NoError(w.t, json.Unmarshal(data, &page))
	for _, hit := range page.Hits {
		ids = append(ids, hit.EventID)
	}
	return ids
}

// A gateway that is killed while it indexes goes on where it was, and finds every message once.
func TestAKilledGatewayFindsEveryMessageOnce_Alone(t *testing.T) {
	w := newWorld(t, llmtest.Func(echo))
	w.worker()
	dir, mark := t.TempDir(), strings.ReplaceAll(w.queue, "-", "") // a word that only this test says
	var contexts []*client.Context
	for i := range 3 {
		contexts = append(contexts, w.open(fmt.Sprintf("indexed-%d", i)))
	}
	gateway, kill := w.serveProcess("--index-dir", dir)
	var want []string
	for round := range 4 {
		for i, c := range contexts {
			turn := w.say(c, fmt.Sprintf("%s %s of round %d", mark, strings.Repeat("long ", 1000), round))
			for _, e := range turn {
				switch e.Body.(type) {
				case event.UserMessage, event.AssistantMessage:
					want = append(want, e.ID)
				}
			}
			if i == round%len(contexts) {
				kill() // in the middle: what follows is recorded without a gateway
			}
		}
		gateway, kill = w.serveProcess("--index-dir", dir)
	}
	w.eventually(func() bool { return len(w.found(gateway, mark)) >= len(want) })
	require.ElementsMatch(t, want, w.found(gateway, mark))
	kill()
	require.NotEmpty(t, filesWith(t, dir, mark), "the index is on disk")

	// The newest activity is first.
	gateway, _ = w.serveProcess("--index-dir", dir)
	w.say(contexts[0], "Once more")
	w.eventually(func() bool {
		response, err := http.Get(gateway + "/contexts?q=indexed-" + "&limit=1")
		require.NoError(t, err)
		defer response.Body.Close()
		var page struct {
			Contexts []struct{ ContextName string }
		}
		require.NoError(t, json.NewDecoder(response.Body).Decode(&page))
		return len(page.Contexts) == 1 && page.Contexts[0].ContextName == contexts[0].Name()
	})

	// The command line reads the logs itself.
	var listed []string
	for line := range strings.Lines(w.starter("", "list", "--json")) {
		var c struct{ ContextName string }
		require.NoError(t, json.Unmarshal([]byte(line), &c))
		if strings.HasPrefix(c.ContextName, "indexed-") && strings.HasSuffix(c.ContextName, w.queue) {
			listed = append(listed, c.ContextName)
		}
	}
	require.Equal(t, []string{contexts[0].Name(), contexts[2].Name(), contexts[1].Name()}, listed)
	hits := w.starter("", "search", mark, "-n", contexts[1].Name(), "--limit", "100", "--json")
	require.Equal(t, len(want)/len(contexts), strings.Count(hits, "\n"))
}
