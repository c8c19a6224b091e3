package e2e

import (
	"net/url"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/natsserver"
	"github.com/seed-9ed7edd4/chronicle/internal/stream/streamtest"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

func isTag(tag event.Tag) func(event.Event) bool {
	return func(e event.Event) bool { return e.Tag() == tag }
}

func (t *turn) underWay() {
	t.w.t.Helper()
	t.until(isTag(event.TagTextDelta))
	t.until(isTag(event.TagLLMRequestStarted))
}

// requireConsistentLog checks that the log contains the user messages once and in order,
// that every request ended once, and that it has at most one complete answer. It returns
// the complete answers.
func (w *world) requireConsistentLog(c *client.Context, messages ...string) (answers []string) {
	w.t.Helper()
	w.log(c) // checks ids
	var recorded []string
	open, ended, answered := "", map[string]bool{}, map[string]bool{}
	end := func(id string) {
		require.False(w.t, ended[id], "request %s ended twice", id)
		ended[id], open = true, ""
	}
	for _, e := range w.from(c, "") {
		switch b := e.Body.(type) {
		case event.UserMessage:
			recorded = append(recorded, b.Content)
		case event.AssistantMessage:
			if !b.Partial {
				require.False(w.t, answered[b.RequestID], "request %s has two answers", b.RequestID)
				answered[b.RequestID] = true
				answers = append(answers, b.Content)
			}
		case event.LLMRequestStarted:
			require.Contains(w.t, []string{"", b.RequestID}, open, "two requests run at once")
			require.False(w.t, ended[b.RequestID], "request %s continues after its end", b.RequestID)
			open = b.RequestID
		case event.LLMRequestCompleted:
			require.True(w.t, answered[b.RequestID], "request %s is completed without an answer", b.RequestID)
			end(b.RequestID)
		case event.LLMRequestInterrupted:
			end(b.RequestID)
		case event.LLMRequestFailed:
			end(b.RequestID)
		}
	}
	require.Empty(w.t, open, "a request has no end")
	require.Equal(w.t, messages, recorded)
	return answers
}

// A lost attempt does not count as a retry. `make bench` measures the time.
func TestTheAnswerOfAKilledWorkerIsRestarted_Alone(t *testing.T) {
	needsTimelyHeartbeats(t)
	w := newWorld(t, llmtest.Answer("I was", " saying").HoldAfter(1, llmtest.NewGate()),
		llmtest.Answer("I was", " saying: hello."),
	)
	first := w.process(contexts.Both)
	c := w.open("killed")
	w.send(c, event.New(event.SetRetryConfig{MaxRetries: 0, InitialDelayMs: 1}))
	turn := w.ask(c, "Hello")
	turn.underWay()
	first.kill()
	require.NoError(t, w.model.Aborted(w.ctx, 1))
	no := false
	_, err := c.Send(w.ctx, event.New(event.UserMessage{Content: "By the way", TriggersTurn: &no}))
	require.NoError(t, err)
	w.process(contexts.Both)

	require.Equal(t, event.TagLLMRequestCompleted, turn.rest().Tag())
	require.True(t, slices.ContainsFunc(turn.seen, func(e event.Event) bool {
		d, ok := e.Body.(event.TextDelta)
		return ok && d.Reset && d.Attempt == 2
	}), "followers must receive a reset")
	require.Equal(t, "I was saying: hello.", deltaText(turn.seen))
	require.Equal(t, story(`
		SessionStarted after 0
		SetRetryConfig
		UserMessage "Hello"
		LLMRequestStarted 1 scripted attempt 1 through 3
		UserMessage "By the way"
		LLMAttemptEnded 1 lost
		LLMRequestStarted 1 scripted attempt 2 through 6
		AssistantMessage "I was saying: hello." through 6
		LLMRequestCompleted 1 stop
	`), w.log(c))
	require.Equal(t, []enumspb.TimeoutType{enumspb.TIMEOUT_TYPE_HEARTBEAT}, w.activityTimeouts(c), "the next attempt must not wait for the end of this one")
	w.replay(c, "")
}

func TestAMessageInterruptsTheAnswerOfAKilledWorker_Alone(t *testing.T) {
	needsTimelyHeartbeats(t)
	w := newWorld(t, llmtest.Answer("I was", " saying").HoldAfter(1, llmtest.NewGate()),
		llmtest.Answer("Yes."),
	)
	first := w.process(contexts.Both)
	c := w.open("killed-and-interrupted")
	turn := w.ask(c, "Hello")
	turn.underWay()
	first.kill()
	w.process(contexts.OnlyWorkflows)
	second := w.ask(c, "Still there?")
	w.process(contexts.OnlyActivities) // it cannot answer before the message is recorded
	require.Equal(t, event.TagLLMRequestCompleted, second.rest().Tag())
	// If the server dispatches the workflow task to the dead worker, the next attempt
	// includes the message instead.
	require.Contains(t, []event.Tag{event.TagLLMRequestInterrupted, event.TagLLMRequestCompleted}, turn.rest().Tag())
	require.Equal(t, []string{"Yes."}, w.requireConsistentLog(c, "Hello", "Still there?"))
	require.Equal(t, []string{"user: Hello", "user: Still there?"}, contents(w.model.Requests()[1]))
	w.replay(c, "")
}

// startNATS starts a NATS server for one test, on the port of the URL or any port.
func startNATS(t *testing.T, at string) *natsserver.Server {
	t.Helper()
	port := 0
	if at != "" {
		u, err := url.Parse(at)
		require.NoError(t, err)
		port, err = strconv.Atoi(u.Port())
		require.NoError(t, err)
	}
	s, err := natsserver.Start(natsserver.Options{Port: port})
	require.NoError(t, err)
	t.Cleanup(s.Shutdown)
	return s
}

// Only live deltas stop. An answer completes, is stopped by a person, and is interrupted by a message.
func TestAnswersCompleteWithoutAWorkingNATS(t *testing.T) {
	t.Parallel()
	t.Run("down", func(t *testing.T) {
		t.Parallel()
		own := startNATS(t, "")
		found := make(chan struct{}, 10)
		on := environment{nats: own.URL(), natsConnected: func() { found <- struct{}{} }}
		isUp := true
		answersCompleteWithoutNATS(t, on, func(w *world) {
			if !isUp {
				own = startNATS(t, own.URL())
				w.wait(found)
			}
			isUp = true
		}, func() {
			own.Shutdown()
			isUp = false
		})
	})
	t.Run("silent", func(t *testing.T) {
		t.Parallel()
		tunnel := streamtest.Start(t, nats.URL())
		answersCompleteWithoutNATS(t, environment{nats: tunnel.URL()}, func(*world) {}, tunnel.Silence)
	})
}

// answersCompleteWithoutNATS calls up before each turn, and down during its answer.
func answersCompleteWithoutNATS(t *testing.T, on environment, up func(*world), down func()) {
	gate := llmtest.NewGate()
	w := newWorldOn(t, on,
		llmtest.Answer("One", " two").HoldAfter(1, gate),
		llmtest.Answer("Three", " four").HoldAfter(1, llmtest.NewGate()),
		llmtest.Answer("Five", " six").HoldAfter(1, llmtest.NewGate()),
		llmtest.Answer("Seven", " eight"),
	)
	w.worker()
	c := w.open("nats")
	turn := w.ask(c, "Count")
	turn.underWay()
	down()
	gate.Open()
	require.Equal(t, event.TagLLMRequestCompleted, turn.rest().Tag())
	require.Equal(t, "One", deltaText(turn.seen))

	up(w)
	turn = w.ask(c, "Go on")
	_, err := w.model.Request(w.ctx, 2)
	require.NoError(t, err)
	down()
	require.NoError(t, c.Interrupt(w.ctx))
	require.NoError(t, w.model.Aborted(w.ctx, 2))
	require.Equal(t, event.TagLLMRequestInterrupted, turn.rest().Tag())

	up(w)
	turn = w.ask(c, "And on")
	_, err = w.model.Request(w.ctx, 3)
	require.NoError(t, err)
	down()
	last := w.say(c, "To the end")
	require.Equal(t, event.TagLLMRequestCompleted, last[len(last)-1].Tag())
	require.Equal(t, event.TagLLMRequestInterrupted, turn.rest().Tag())

	require.Equal(t, []string{"One two", "Seven eight"}, w.requireConsistentLog(c, "Count", "Go on", "And on", "To the end"))
	w.replay(c, "")
}
