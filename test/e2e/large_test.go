package e2e

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
)

// maxRunBytes is the largest history of a run without a flood of plain signals.
const maxRunBytes = 40 << 20

// requireNoRunEnded checks that the server terminated no run of a context, and that
// each history has less than maxBytes.
func (w *world) requireNoRunEnded(c *client.Context, maxBytes int64) {
	w.t.Helper()
	for i, run := range w.runs(c) {
		d, err := w.temporal.DescribeWorkflowExecution(w.ctx, wire.WorkflowID(c.Name()), run)
		require.NoError(w.t, err)
		info := d.GetWorkflowExecutionInfo()
		want := enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW
		if i == 0 {
			want = enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
		}
		require.Equal(w.t, want, info.GetStatus(), "run %s, %d bytes, %d entries", run, info.GetHistorySizeBytes(), info.GetHistoryLength())
		require.Less(w.t, info.GetHistorySizeBytes(), maxBytes)
	}
}

func TestFortyLargeAttachmentsEndNoRun_Alone(t *testing.T) {
	large(t)
	w := newWorldOn(t, environment{timeout: largeTimeout})
	w.worker()
	c := w.open("attachments")
	random := rand.New(rand.NewPCG(1, 2))
	const attachments, size = 40, 900_000
	var lines []string
	for i := range attachments {
		data := base64.StdEncoding.EncodeToString([]byte(noise(random, size*3/4)))
		lines = append(lines, fmt.Sprintf(
			`{"_tag":"FileAttachment","clientEventId":"file-%d","fileName":"file-%d.txt","mediaType":"text/plain","source":{"type":"blob","data":%q}}`, i, i, data))
	}
	require.Len(t, printed(w.script(c, lines...)), attachments)
	w.log(c) // checks ids
	require.Equal(t, attachments, countOf(w, c, event.TagFileAttachment))
	w.requireNoRunEnded(c, maxRunBytes)
}

func TestThirteenLargeInputsDuringOneAnswerEndNoRun_Alone(t *testing.T) {
	large(t)
	gate := llmtest.NewGate()
	w := newWorldOn(t, environment{timeout: largeTimeout},
		llmtest.Answer("I", " listen").HoldAfter(1, gate), llmtest.Answer("Done."))
	w.worker()
	c := w.open("large-queue")
	w.send(c, event.New(event.SetDeliveryPolicy{Policy: event.PolicyQueue}), event.New(event.SetTimeout{TimeoutMs: 600_000}))
	turn := w.ask(c, "Listen")
	turn.underWay()
	random := rand.New(rand.NewPCG(3, 4))
	want := map[string]int{}
	for i := range 13 {
		n := note(fmt.Sprintf("large-%d", i), noise(random, 1_890_000))
		_, err := c.Send(w.ctx, n)
		require.NoError(t, err)
		want[n.ClientEventID] = 1
	}
	gate.Open()
	require.Equal(t, event.TagLLMRequestCompleted, turn.rest().Tag())
	require.Equal(t, "I listen", deltaText(turn.seen))
	require.Equal(t, "Done.", strings.TrimSpace(deltaText(w.say(c, "And now?"))))
	w.log(c) // checks ids
	recorded := map[string]int{}
	for e, err := range c.Events(w.ctx, "") {
		require.NoError(t, err)
		if strings.HasPrefix(e.ClientEventID, "large-") {
			recorded[e.ClientEventID]++
		}
	}
	require.Equal(t, want, recorded)
	w.requireNoRunEnded(c, maxRunBytes)
}
