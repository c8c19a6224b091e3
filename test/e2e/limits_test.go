package e2e

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

// noise returns incompressible text.
func noise(random *rand.Rand, bytes int) string {
	text := make([]byte, bytes)
	for i := range text {
		text[i] = ' ' + byte(random.IntN(95))
	}
	return string(text)
}

func TestAnActivityWorkerAnswersALargeConversation_Alone(t *testing.T) {
	large(t)
	w := newWorld(t, llmtest.Answer("I have read it all."))
	w.worker(func(o *contexts.Options) { o.Part = contexts.OnlyWorkflows })
	w.worker(func(o *contexts.Options) { o.Part = contexts.OnlyActivities })
	c := w.open("large-split")
	no := false
	const messages = 5
	for range messages {
		w.send(c, event.New(event.UserMessage{Content: strings.Repeat("x", 1<<20), TriggersTurn: &no}))
	}
	// The session exceeds the limit of a query.
	last := w.say(c, "Done")
	require.Equal(t, event.TagLLMRequestCompleted, last[len(last)-1].Tag())
	require.Len(t, w.model.Requests()[0].Messages, messages+1)
}

func TestSendRejectsAMessageOverTheLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, sender := range map[string]struct {
		client *client.Client
		bytes  int
		limit  string
	}{
		"with a store":    {w.client, wire.MaxStoredBytes, "(at most 16000000)"},
		"without a store": {client.New(client.Options{Temporal: w.dial(nil), TaskQueue: w.queue}), 60 << 10, "at most 61440 without a blob store"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := sender.client.Open("too-large." + w.queue)
			require.NoError(t, err)
			_, err = c.Send(w.ctx, event.New(event.UserMessage{Content: strings.Repeat("x", sender.bytes)}))
			require.ErrorAs(t, err, new(*event.FieldError))
			require.ErrorContains(t, err, sender.limit)
		})
	}
}

func byteCount(r llmtest.Request) llmtest.Step {
	return llmtest.Answer(fmt.Sprintf("%d bytes.", len(r.LastUser())))
}

func TestAMessageOfThreeMegabytesIsAnsweredAndRecorded_Alone(t *testing.T) {
	large(t)
	w := newWorld(t, llmtest.Func(byteCount))
	stop := w.worker(shortRuns)
	c := w.open("three-megabytes")
	large := strings.Repeat("<3 ", 1<<20)
	hasIt := func(e event.Event) bool {
		m, ok := e.Body.(event.UserMessage)
		return ok && m.Content == large
	}
	said := w.say(c, large)
	require.Equal(t, "3145728 bytes.", deltaText(said))
	require.True(t, slices.ContainsFunc(said, hasIt))
	require.True(t, hasIt(w.await(c, hasIt)))

	stop()
	w.worker(shortRuns) // replays the history
	for i := range 8 {
		require.Equal(t, "6 bytes.", deltaText(w.say(c, fmt.Sprintf("Short%d", i))))
		w.awaitArchive(c)
	}
	for _, r := range w.model.Requests() {
		require.Equal(t, large, r.Messages[0].Content)
	}
	runs := w.runs(c)
	require.Greater(t, len(runs), 1)
	for _, run := range runs {
		w.replayRun(c, run, "")
	}
	archived := archivedThrough(w, w.archive, c)
	require.GreaterOrEqual(t, archived, 5)
	w.log(c)
	var found []event.Event
	for _, e := range w.from(c, "") {
		if hasIt(e) {
			found = append(found, e)
		}
	}
	require.Len(t, found, 1)
}

func TestAConversationOfAMillionTokensContinuesAsNew_Alone(t *testing.T) {
	large(t)
	largeContext(t, 5, 9, 100_000)
}

func TestATenMegabyteContextContinuesAsNewReopensAndExports_Long(t *testing.T) {
	long(t)
	onlyHeavy(t)
	largeContext(t, 4, 3, 900_000)
}

// largeContext has a context with some inputs of messages, which continues as new, is exported, and reopens.
func largeContext(t *testing.T, inputs, messages, bytes int) {
	w := newWorld(t, llmtest.Func(byteCount))
	w.worker(func(o *contexts.Options) { o.ContinueAfter = contexts.MinContinueAfter })
	c := w.open("large")
	random := rand.New(rand.NewPCG(3, 4))
	for range inputs {
		var events []event.Event
		for range messages {
			events = append(events, note("", noise(random, bytes)))
		}
		w.send(c, events...)
	}
	require.Equal(t, "4 bytes.", deltaText(w.say(c, "And?")))
	notes := 0
	for len(w.runs(c)) == 1 { // a slow archive delays continue-as-new
		w.send(c, note(fmt.Sprintf("note-%d", notes), "Go on")) // cheaper than turns
		notes++
	}
	require.Less(t, w.historySize(c), int64(1<<20), "the history must not contain the session")

	w.close(c, "for today")
	exported := w.starter("", "export", "-n", c.Name())
	require.Greater(t, len(exported), inputs*messages*bytes)
	require.Equal(t, "4 bytes.", deltaText(w.say(c, "And?")))
	require.Less(t, w.historySize(c), int64(1<<20), "the history must not contain the restored session")
	state, err := c.State(w.ctx)
	require.NoError(t, err)
	require.Equal(t, inputs*messages+notes+4, state.MessageCount)
	request := w.model.Requests()[1]
	require.Len(t, request.Messages, inputs*messages+notes+3)
	require.Greater(t, len(request.Body), inputs*messages*bytes)
	require.True(t, strings.HasPrefix(w.starter("", "export", "-n", c.Name()), exported), "the new log must extend the exported one")
	w.log(c) // checks ids
	w.replay(c, "")
}

// awaitListed waits until the newest session of a context is listed with a status.
func (w *world) awaitListed(c *client.Context, status wire.Status) {
	w.t.Helper()
	query := fmt.Sprintf("WorkflowId = '%s'", wire.WorkflowID(c.Name()))
	for !strings.Contains(w.starter("", "list", "--query", query, "--json"), fmt.Sprintf(`"status":%q`, status)) {
	}
}

// requireNoRunEnded checks that the server terminated no run of a context.
func (w *world) requireNoRunEnded(c *client.Context) {
	w.t.Helper()
	for i, run := range w.runs(c) {
		d := w.described(c, run)
		info := d.GetWorkflowExecutionInfo()
		want := enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW
		if i == 0 {
			want = enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
		}
		require.Equal(w.t, want, info.GetStatus(), "run %s, %d bytes, %d entries", run, info.GetHistorySizeBytes(), info.GetHistoryLength())
	}
}

// Each of the inputs would be written more than once into a history of 50 MB.
func TestLargeInputIsAReferenceInTheHistory_Alone(t *testing.T) {
	large(t)
	const inputs, size = 5, 1_890_000
	requireReferences := func(w *world, c *client.Context) {
		w.t.Helper()
		require.Len(w.t, w.runs(c), 1)
		require.Less(w.t, w.historySize(c), int64(size/10))
	}
	random := rand.New(rand.NewPCG(3, 4))
	sendAll := func(w *world, c *client.Context) (notes []event.Event) {
		w.t.Helper()
		for i := range inputs {
			notes = append(notes, note(fmt.Sprintf("large-%d", i), noise(random, size)))
			_, err := c.Send(w.ctx, notes[i])
			require.NoError(w.t, err)
		}
		return notes
	}
	t.Run("without a worker", func(t *testing.T) {
		w := newWorld(t)
		c := w.open("large-waiting")
		notes := sendAll(w, c)
		requireReferences(w, c)
		w.worker()
		w.requireAll(c, notes)
		requireReferences(w, c)
	})
	t.Run("during an answer", func(t *testing.T) {
		gate := llmtest.NewGate()
		w := newWorld(t, llmtest.Answer("I", " listen").HoldAfter(1, gate), llmtest.Answer("Done."))
		w.worker()
		c := w.open("large-queue")
		w.send(c, event.New(event.SetDeliveryPolicy{Policy: event.PolicyQueue}), event.New(event.SetTimeout{TimeoutMs: 600_000}))
		turn := w.ask(c, "Listen")
		turn.underWay()
		notes := sendAll(w, c)
		gate.Open()
		require.Equal(t, event.TagLLMRequestCompleted, turn.rest().Tag())
		require.Equal(t, "I listen", deltaText(turn.seen))
		require.Equal(t, "Done.", deltaText(w.say(c, "And now?")))
		w.requireAll(c, notes)
		requireReferences(w, c)
	})
	t.Run("attachments of a script", func(t *testing.T) {
		w := newWorld(t)
		w.worker()
		c := w.open("attachments")
		var lines []string
		for i := range inputs {
			data := base64.StdEncoding.EncodeToString([]byte(noise(random, size/2)))
			lines = append(lines, fmt.Sprintf(
				`{"_tag":"FileAttachment","clientEventId":"file-%d","fileName":"file-%d.txt","mediaType":"text/plain","source":{"type":"blob","data":%q}}`, i, i, data))
		}
		require.Len(t, printed(w.script(c, lines...)), inputs)
		w.log(c) // checks ids
		require.Equal(t, inputs, countOf(w, c, event.TagFileAttachment))
		requireReferences(w, c)
	})
}
