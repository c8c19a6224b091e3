package e2e

import (
	"cmp"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

// waitVariable is how long calls wait without a worker, such as 1h. Default: 2s.
const waitVariable = "CHRONICLE_E2E_WAIT"

// No worker runs while calls wait. Decisions, results and deadlines of that time count.
func TestCallsWaitWithoutAWorker_Alone(t *testing.T) {
	needsTimelyHeartbeats(t)
	wait, err := time.ParseDuration(cmp.Or(os.Getenv(waitVariable), "2s"))
	require.NoError(t, err)
	p := newProbe(t, echoed)
	w := newWorldOn(t, environment{timeout: testTimeout + wait}, llmtest.Func(func(r llmtest.Request) llmtest.Step {
		switch last := r.Messages[len(r.Messages)-1]; {
		case last.Role == "tool":
			return llmtest.Answer("Read: ", last.Content)
		case last.Content == "Ask":
			return llmtest.Calls(llmtest.Call{ID: "q", Name: askUser.Name, Arguments: `{"question":"Which?"}`})
		default:
			return llmtest.Calls(p.call("probe", last.Content))
		}
	}))
	worker := w.process(contexts.Both)
	approved, expired, asked := w.open("approved-later"), w.open("expired-alone"), w.open("answered-later")
	w.requireApproval(approved, wait+time.Hour)
	w.requireApproval(expired, wait)
	w.send(asked, event.New(event.SetTools{Tools: event.ToolList{askUser}, ExpiryMs: new((wait + time.Hour).Milliseconds())}))
	turns := map[*client.Context]*turn{
		approved: w.ask(approved, "a"),
		asked:    w.ask(asked, "Ask"),
		expired:  w.ask(expired, "b"),
	}
	turns[approved].until(isTag(event.TagApprovalRequested))
	turns[asked].until(isTag(event.TagLLMAttemptEnded))
	turns[expired].until(isTag(event.TagApprovalRequested))
	worker.kill()

	require.GreaterOrEqual(t, w.awaitTimer(expired), wait-time.Second)
	_, err = approved.Send(w.ctx, event.New(event.ApprovalDecided{Decision: event.Approve}))
	require.NoError(t, err)
	_, err = asked.Send(w.ctx, event.New(event.ToolResult{ToolCallID: "q", Value: []byte(`"blue"`)}))
	require.NoError(t, err)
	require.Empty(t, p.seen())

	w.process(contexts.Both)
	for c, want := range map[*client.Context]string{
		approved: "Read: result of a", asked: "Read: blue", expired: "Read: expired: no approval",
	} {
		require.Equal(t, event.TagLLMRequestCompleted, turns[c].rest().Tag())
		require.Equal(t, 1, countOf(w, c, event.TagToolResult))
		require.Contains(t, w.log(c), "AssistantMessage \""+want)
	}
	require.Equal(t, []probeCall{{"call_a", "a"}}, p.seen())
	during := ""
	if wait >= time.Hour {
		during = "-for-an-hour"
	}
	w.replay(approved, "approval-given-without-worker"+during)
	w.replay(asked, "client-result-without-worker"+during)
	w.replay(expired, "approval-expired-without-worker"+during)
}

// awaitTimer waits until the server fires a timer of a context, and returns how long it ran.
func (w *world) awaitTimer(c *client.Context) time.Duration {
	w.t.Helper()
	started := map[int64]time.Time{}
	var ran time.Duration
	w.awaitHistory(c, func(h *historypb.HistoryEvent) bool {
		started[h.GetEventId()] = h.GetEventTime().AsTime()
		isFired := h.GetEventType() == enumspb.EVENT_TYPE_TIMER_FIRED
		if isFired {
			ran = h.GetEventTime().AsTime().Sub(started[h.GetTimerFiredEventAttributes().GetStartedEventId()])
		}
		return isFired
	})
	return ran
}
