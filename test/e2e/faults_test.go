package e2e

import (
	"net/url"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/natsserver"
	"github.com/seed-9ed7edd4/chronicle/internal/stream/streamtest"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

// faultTimeout is the timeout of tests with faults, which wait for several other timeouts.
const faultTimeout = 5 * time.Minute

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
	for e, err := range c.Events(w.ctx, "") {
		require.NoError(w.t, err)
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
	w := newWorldOn(t, environment{timeout: faultTimeout},
		llmtest.Answer("I was", " saying").HoldAfter(1, llmtest.NewGate()),
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
	w := newWorldOn(t, environment{timeout: faultTimeout},
		llmtest.Answer("I was", " saying").HoldAfter(1, llmtest.NewGate()),
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

func TestAnswersCompleteDuringANATSOutage(t *testing.T) {
	t.Parallel()
	gate := llmtest.NewGate()
	own := startNATS(t, "")
	found := make(chan struct{}, 10)
	w := newWorldOn(t, environment{nats: own.URL(), natsConnected: func() { found <- struct{}{} }},
		llmtest.Answer("One", " two").HoldAfter(1, gate),
		llmtest.Answer("Three", " four").HoldAfter(1, llmtest.NewGate()),
		llmtest.Answer("Five", " six").HoldAfter(1, llmtest.NewGate()),
		llmtest.Answer("Seven", " eight"),
	)
	again := func() {
		own = startNATS(t, own.URL())
		select {
		case <-found:
		case <-w.ctx.Done():
			t.Fatal("no reconnection to NATS")
		}
	}
	w.worker()
	c := w.open("without-nats")

	turn := w.ask(c, "Count")
	turn.underWay()
	own.Shutdown()
	gate.Open()
	require.Equal(t, event.TagLLMRequestCompleted, turn.rest().Tag(), "the turn completes")
	require.Equal(t, "One", deltaText(turn.seen), "and only live deltas stop")

	again()
	turn = w.ask(c, "Go on")
	turn.underWay()
	own.Shutdown()
	require.NoError(t, c.Interrupt(w.ctx))
	require.NoError(t, w.model.Aborted(w.ctx, 2))
	require.Equal(t, event.TagLLMRequestInterrupted, turn.rest().Tag())

	again()
	turn = w.ask(c, "And on")
	turn.underWay()
	own.Shutdown()
	last := w.say(c, "To the end")
	require.Equal(t, event.TagLLMRequestCompleted, last[len(last)-1].Tag())
	require.Equal(t, event.TagLLMRequestInterrupted, turn.rest().Tag())

	require.Equal(t, story(`
		SessionStarted after 0
		UserMessage "Count"
		LLMRequestStarted 1 scripted attempt 1 through 2
		AssistantMessage "One two" through 2
		LLMRequestCompleted 1 stop
		UserMessage "Go on"
		LLMRequestStarted 2 scripted attempt 1 through 6
		AssistantMessage "Three" through 6 partial
		LLMRequestInterrupted 2 cancelled "Three"
		UserMessage "And on"
		LLMRequestStarted 3 scripted attempt 1 through 10
		UserMessage "To the end"
		AssistantMessage "Five" through 10 partial
		LLMRequestInterrupted 3 new_user_input "Five"
		LLMRequestStarted 4 scripted attempt 1 through 14
		AssistantMessage "Seven eight" through 14
		LLMRequestCompleted 4 stop
	`), w.log(c))
	w.replay(c, "")
}

func TestAnswersCompleteWhileNATSIsSilent(t *testing.T) {
	t.Parallel()
	gate := llmtest.NewGate()
	tunnel := streamtest.Start(t, nats.URL())
	w := newWorldOn(t, environment{nats: tunnel.URL(), timeout: faultTimeout},
		llmtest.Answer("One", " two").HoldAfter(1, gate),
		llmtest.Answer("Three", " four").HoldAfter(1, llmtest.NewGate()),
		llmtest.Answer("Five", " six").HoldAfter(1, llmtest.NewGate()),
		llmtest.Answer("Seven", " eight"),
	)
	w.worker()
	c := w.open("silent-nats")

	turn := w.ask(c, "Count")
	turn.underWay()
	tunnel.Silence()
	gate.Open()
	require.Equal(t, event.TagLLMRequestCompleted, turn.rest().Tag(), "the turn completes")
	require.Equal(t, "One", deltaText(turn.seen), "and only live deltas stop")

	turn = w.ask(c, "Go on")
	_, err := w.model.Request(w.ctx, 2)
	require.NoError(t, err)
	require.NoError(t, c.Interrupt(w.ctx))
	require.NoError(t, w.model.Aborted(w.ctx, 2))
	require.Equal(t, event.TagLLMRequestInterrupted, turn.rest().Tag())

	turn = w.ask(c, "And on")
	_, err = w.model.Request(w.ctx, 3)
	require.NoError(t, err)
	last := w.say(c, "To the end")
	require.Equal(t, event.TagLLMRequestCompleted, last[len(last)-1].Tag())
	require.Equal(t, event.TagLLMRequestInterrupted, turn.rest().Tag())

	require.Equal(t, []string{"One two", "Seven eight"}, w.requireConsistentLog(c, "Count", "Go on", "And on", "To the end"))
	w.replay(c, "")
}

func TestEveryModelFailureIsRetried(t *testing.T) {
	t.Parallel()
	half := llmtest.Answer("Half", " of it")
	w := newWorld(t,
		llmtest.Error(429, "rate_limit_exceeded", "slow down").RetryAfter("1"),
		llmtest.Error(500, "server_error", "down"),
		llmtest.Drop(),
		llmtest.Stall(),
		llmtest.Answer("Never", " mind").HoldAfter(1, llmtest.NewGate()),
		half.CutAt(half.Len()/2),
		llmtest.Answer("All", " of it."),
	)
	w.worker()
	c := w.open("failing")
	const silence = 3_000
	w.send(c,
		event.New(event.SetRetryConfig{MaxRetries: 6, InitialDelayMs: 10}),
		event.New(event.SetTimeout{TimeoutMs: 60_000, FirstTokenMs: new(int64(silence)), StallMs: new(int64(silence))}))
	turn := w.say(c, "Hello?")
	require.Equal(t, event.TagLLMRequestCompleted, turn[len(turn)-1].Tag())
	require.Equal(t, "All of it.", deltaText(turn))
	require.Equal(t, story(`
		SessionStarted after 0
		SetRetryConfig
		SetTimeout
		UserMessage "Hello?"
		LLMRequestStarted 1 scripted attempt 1
		LLMAttemptEnded 1 failed
		LLMRequestStarted 1 scripted attempt 2
		LLMAttemptEnded 1 failed
		LLMRequestStarted 1 scripted attempt 3
		LLMAttemptEnded 1 failed
		LLMRequestStarted 1 scripted attempt 4
		LLMAttemptEnded 1 failed
		LLMRequestStarted 1 scripted attempt 5
		LLMAttemptEnded 1 failed
		LLMRequestStarted 1 scripted attempt 6
		LLMAttemptEnded 1 failed
		LLMRequestStarted 1 scripted attempt 7
		AssistantMessage "All of it."
		LLMRequestCompleted 1 stop
	`), withoutPositions(w.log(c)))

	milliseconds := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	requests := w.model.Requests()
	for i, want := range []time.Duration{
		time.Second,                 // Retry-After
		milliseconds(20),            // the initial delay, doubled per attempt
		milliseconds(40),            //
		milliseconds(80),            // after the timeout of the first token
		milliseconds(silence + 160), // plus the stall timeout
		milliseconds(320),
	} {
		require.GreaterOrEqual(t, requests[i+1].At.Sub(requests[i].At), want, "between attempts %d and %d", i+1, i+2)
	}
	var durations []int64
	for _, e := range turn {
		if ended, ok := e.Body.(event.LLMAttemptEnded); ok {
			durations = append(durations, ended.DurationMs)
		}
	}
	require.Len(t, durations, 6)
	require.GreaterOrEqual(t, durations[3], int64(silence), "the fourth attempt ends after the timeout of the first token")
	w.replay(c, "")
}
