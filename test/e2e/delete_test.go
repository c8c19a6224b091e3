package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	historypb "go.temporal.io/api/history/v1"
	sdkclient "go.temporal.io/sdk/client"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
)

// canary is in everything that the test of deletions sends.
const canary = "canary-5f0c1e"

// syncBuffer is a buffer for logs.
type syncBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.String()
}

// filesWith returns the files below a folder that contain a text in their bytes or names.
func filesWith(t *testing.T, folder, text string) (found []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(folder, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			return nil
		}
		var data []byte
		if err == nil {
			data, err = os.ReadFile(name)
		}
		if errors.Is(err, fs.ErrNotExist) { // deleted since it was listed
			return nil
		}
		if bytes.Contains(data, []byte(text)) || strings.Contains(entry.Name(), text) {
			found = append(found, name)
		}
		return err
	}))
	return found
}

// rowsWith reports whether a live row of an SQLite database contains a text. Its file also has deleted rows.
func rowsWith(t *testing.T, database, text string) bool {
	t.Helper()
	compact := filepath.Join(t.TempDir(), "compact.db")
	out, err := exec.Command("sqlite3", database, ".timeout 10000", "VACUUM INTO '"+compact+"'").CombinedOutput()
	require.NoError(t, err, string(out))
	data, err := os.ReadFile(compact)
	require.NoError(t, err)
	return bytes.Contains(data, []byte(text))
}

// fillWithCanaries puts the canary in by every door.
func (w *world) fillWithCanaries(c *client.Context) {
	w.t.Helper()
	long := strings.Repeat(canary+" ", 10_000)
	w.send(c,
		event.New(event.SystemPrompt{Content: "You are " + canary}),
		event.New(event.SetTools{Tools: event.ToolList{{Pattern: "*"}}}),
		event.New(event.SetRequestSettings{Labels: map[string]string{"user": canary}}),
		event.New(event.SetDetails{Title: new("About " + canary), Labels: map[string]string{"about": canary}, Owner: canary}),
		event.New(event.Note{Kind: event.NoteSystem, Content: canary}))
	message := event.New(event.UserMessage{Content: long})
	message.ClientEventID = canary
	message.Extra = map[string]json.RawMessage{"metadata": json.RawMessage(`"` + canary + `"`)}
	file := event.New(event.FileAttachment{
		Source: event.Source{Type: event.SourceBlob, Data: []byte(long + "file")}, MediaType: "text/plain", FileName: canary + ".txt", Size: int64(len(long) + 4),
	})
	w.say(c, "Search "+canary, message, file)
	require.NoError(w.t, w.temporal.SignalWorkflow(w.ctx, wire.WorkflowID(c.Name()), "", wire.SignalEvent,
		map[string]any{"_tag": "UserMessage", "content": "signalled " + canary, "triggersTurn": false}))
	require.NoError(w.t, c.Close(w.ctx, "closed by "+canary))
	w.await(c, isTag(event.TagSessionEnded))
	w.say(c, "Again "+canary)
}

// canarySteps call a tool with the canary in each turn, and repeat it in the answer.
func canarySteps(p *probe) llmtest.Step {
	return llmtest.Func(func(r llmtest.Request) llmtest.Step {
		if last := r.Messages[len(r.Messages)-1]; last.Role == "tool" {
			return llmtest.Answer(strings.Repeat("found "+canary+" ", 10_000))
		}
		call := p.call("probe", canary)
		call.ID = "call_1" // ids are in logs
		return llmtest.Calls(call)
	})
}

// Everything of a deleted context but its name is gone from all files and databases, even if the worker that deletes is
// killed.
func TestADeletedContextIsNowhere_Alone(t *testing.T) {
	devServerOnly(t)
	if _, err := exec.LookPath("sqlite3"); err != nil {
		t.Skip("sqlite3 is not installed: it reads the database of the server")
	}
	own := startOwnServer(t)
	p := newProbe(t, func(context.Context, string) string { return strings.Repeat("result "+canary, 10_000) })
	w := newWorldOn(t, environment{temporal: own.Address()}, canarySteps(p))
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})) // of the hook, which has a cursor
	defer receiver.Close()
	settings := workerSettings{HooksFile: hooksFile(t, receiver.URL, "stages = [\"event\"]\n")}
	first := w.processWith(settings)
	c, kept := w.open("purged"), w.open("kept")
	w.fillWithCanaries(c)
	events := w.from(c, "")
	require.NoError(t, c.Fork(w.ctx, events[len(events)-1].ID, "copy."+w.queue))
	w.say(kept, "Hello")
	scheduled, err := c.Schedule(w.ctx, client.Schedule{Every: time.Hour, Message: event.UserMessage{Content: canary}})
	require.NoError(t, err)
	require.NoError(t, w.temporal.ScheduleClient().GetHandle(w.ctx, wire.ScheduleID(c.Name(), scheduled.ID)).Trigger(w.ctx, sdkclient.ScheduleTriggerOptions{}))
	w.awaitScheduled(c, 1)
	answer := events[slices.IndexFunc(events, isTag(event.TagAssistantMessage))]
	system := strings.Repeat(canary+" ", 1000)
	_, err = c.Evaluate(w.ctx, "again", client.Evaluation{
		Through: answer.Body.(event.AssistantMessage).ThroughEventID, Answer: answer.ID, System: &system,
	})
	require.NoError(t, err)

	log, index := &syncBuffer{}, t.TempDir()
	g := gateway.New(w.client, gateway.Options{Log: slog.New(slog.NewJSONHandler(log, nil)), IndexDir: index})
	defer g.Close()
	get := func(method, path string) (int, string) {
		answer := httptest.NewRecorder()
		g.ServeHTTP(answer, httptest.NewRequestWithContext(w.ctx, method, "http://localhost"+path, nil))
		return answer.Code, answer.Body.String()
	}
	status, text := get(http.MethodGet, "/contexts/"+c.Name()+"/transcript")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, text, canary, "the room has it")

	w.eventually(func() bool {
		_, text = get(http.MethodGet, "/search?q="+canary)
		return strings.Contains(text, c.Name()+":") && strings.Contains(text, `"assistant"`)
	})
	w.eventually(func() bool { return len(filesWith(t, index, canary)) > 0 })
	database, blobs := filepath.Join(own.options.DataDir, "temporal.db"), strings.TrimPrefix(w.blobURL, "file://")
	require.True(t, rowsWith(t, database, canary))
	require.NotEmpty(t, filesWith(t, blobs, canary))

	status, text = get(http.MethodDelete, "/contexts/"+c.Name()+"?purge=true&forks=delete")
	require.Equal(t, http.StatusAccepted, status, text)
	w.awaitHistoryOf(wire.DeletionID(c.Name()), func(h *historypb.HistoryEvent) bool { return h.GetActivityTaskScheduledEventAttributes() != nil })
	first.kill()
	second := w.processWith(settings)

	var receipt client.Deletion
	w.eventually(func() bool {
		status, text = get(http.MethodGet, "/contexts/"+c.Name()+"/deletion")
		return status == http.StatusOK && json.Unmarshal([]byte(text), &receipt) == nil && !receipt.EndedAt.IsZero()
	})
	t.Log(text)
	require.Len(t, receipt.DeletedForks, 1)
	for _, place := range []wire.Place{wire.PlaceEvaluations, wire.PlaceLog, wire.PlaceBlobs, wire.PlaceCursors} {
		require.Positive(t, removedFrom(receipt, place), place)
	}
	w.eventually(func() bool {
		status, _ = get(http.MethodGet, "/contexts/"+c.Name()+"/transcript")
		return status == http.StatusNotFound
	})
	require.Empty(t, filesWith(t, blobs, canary))
	require.Empty(t, filesWith(t, blobs, c.Name()))
	w.eventually(func() bool { return !rowsWith(t, database, canary) })
	w.eventually(func() bool { return len(filesWith(t, index, canary)) == 0 })
	require.Empty(t, filesWith(t, index, c.Name()))
	_, text = get(http.MethodGet, "/search?q=canary")
	require.JSONEq(t, `{"hits":[]}`, text)
	_, text = get(http.MethodGet, "/contexts")
	require.NotContains(t, text, c.Name())
	require.Contains(t, text, kept.Name())
	require.NoError(t, second.Stop(testTimeout))
	for _, output := range []string{first.output.String(), second.output.String(), log.String()} {
		require.NotEmpty(t, output)
		require.NotContains(t, output, canary)
	}
	w.processWith(settings)
	w.say(kept, "Are you there?")
	turn := w.say(c, "Hello")
	require.Equal(t, event.FormatID(c.Name(), 1), w.from(c, "")[0].ID, "the name is free")
	require.NotContains(t, w.model.Requests()[len(w.model.Requests())-1].Messages[0].Content, canary)
	require.NotEmpty(t, turn)
}

func removedFrom(d client.Deletion, place wire.Place) (n int) {
	for _, r := range d.Removed {
		if r.Place == place {
			n += r.Count
		}
	}
	return n
}
