package e2e

import (
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

func TestAConversationOfThreeTurnsWithAnAttachment(t *testing.T) {
	t.Parallel()
	w := newWorld(t,
		llmtest.Answer("Hello", " there").Thinking("They ", "greet me"),
		llmtest.Answer("A dot"),
		llmtest.Answer("Bye"),
	)
	stop := w.worker()
	c := w.open("demo")
	first := w.say(c, "Hi", event.New(event.SystemPrompt{Content: "Be brief."}))
	w.say(c, "What is this?", event.New(event.FileAttachment{
		Source: event.Source{Type: event.SourceBlob, Data: []byte("\x89PNG")}, MediaType: "image/png", FileName: "dot.png", Size: 4,
	}))
	w.say(c, "Thanks")
	stop() // the log is read without a worker
	require.Equal(t, story(`
		SessionStarted after 0
		SystemPrompt "Be brief."
		UserMessage "Hi"
		LLMRequestStarted 1 scripted attempt 1 through 3
		AssistantMessage "Hello there" through 3 reasoning "They greet me"
		LLMRequestCompleted 1 stop
		FileAttachment dot.png image/png
		UserMessage "What is this?"
		LLMRequestStarted 2 scripted attempt 1 through 8
		AssistantMessage "A dot" through 8
		LLMRequestCompleted 2 stop
		UserMessage "Thanks"
		LLMRequestStarted 3 scripted attempt 1 through 12
		AssistantMessage "Bye" through 12
		LLMRequestCompleted 3 stop
	`), w.log(c))
	require.Equal(t, "Hello there", deltaText(first), "the deltas must add up to the answer")
	reasoning := ""
	for _, e := range first {
		if d, ok := e.Body.(event.ReasoningDelta); ok {
			reasoning += d.Delta
		}
	}
	require.Equal(t, "They greet me", reasoning)

	var asked []string
	for _, m := range w.model.Requests()[2].Messages {
		text := m.Content
		for _, part := range m.MultiContent {
			text += "[" + string(part.Type) + "]" + part.Text
			if part.ImageURL != nil {
				text += part.ImageURL.URL
			}
		}
		asked = append(asked, m.Role+": "+text)
	}
	require.Equal(t, []string{
		"system: Be brief.",
		"user: Hi",
		"assistant: Hello there",
		"user: [text]What is this?[image_url]data:image/png;base64,iVBORw==",
		"assistant: A dot",
		"user: Thanks",
	}, asked, "models receive no reasoning")
	w.replay(c, "conversation")
}

func deltaText(events []event.Event) string {
	var b strings.Builder
	for _, e := range events {
		if d, ok := e.Body.(event.TextDelta); ok {
			if d.Reset {
				b.Reset()
			}
			b.WriteString(d.Delta)
		}
	}
	return b.String()
}

func TestNewInputInterruptsAndKeepsThePartialAnswer(t *testing.T) {
	t.Parallel()
	gate := llmtest.NewGate()
	w := newWorld(t,
		llmtest.Answer("Once upon", " a time").HoldAfter(1, gate),
		llmtest.Answer("Fine."),
	)
	w.worker()
	c := w.open("interrupted")
	first := w.ask(c, "Tell me a story")
	require.NoError(t, gate.Reached(w.ctx))
	first.until(func(e event.Event) bool { return e.Tag() == event.TagTextDelta })
	first.until(func(e event.Event) bool { return e.Tag() == event.TagLLMRequestStarted })
	w.say(c, "Shorter")
	require.NoError(t, w.model.Aborted(w.ctx, 1))
	require.Equal(t, event.TagLLMRequestInterrupted, first.rest().Tag())
	require.Equal(t, story(`
		SessionStarted after 0
		UserMessage "Tell me a story"
		LLMRequestStarted 1 scripted attempt 1 through 2
		UserMessage "Shorter"
		AssistantMessage "Once upon" through 2 partial
		LLMRequestInterrupted 1 new_user_input "Once upon"
		LLMRequestStarted 2 scripted attempt 1 through 6
		AssistantMessage "Fine." through 6
		LLMRequestCompleted 2 stop
	`), w.log(c))
	require.Equal(t, []string{"user: Tell me a story", "assistant: Once upon", "user: Shorter"},
		contents(w.model.Requests()[1]), "the partial answer precedes the interrupting message")
	w.replay(c, "interruption")
}

func TestAStoppingWorkerHandsBackItsRequest(t *testing.T) {
	t.Parallel()
	gate := llmtest.NewGate()
	w := newWorld(t,
		llmtest.Answer("I was", " saying").HoldAfter(1, gate),
		llmtest.Answer("I was saying: hello."),
	)
	stop := w.worker()
	c := w.open("handed-back")
	w.send(c, event.New(event.SetRetryConfig{MaxRetries: 0, InitialDelayMs: 1}))
	turn := w.ask(c, "Hello")
	turn.until(func(e event.Event) bool { return e.Tag() == event.TagTextDelta })
	turn.until(func(e event.Event) bool { return e.Tag() == event.TagLLMRequestStarted })
	stop()
	w.worker()
	require.Equal(t, event.TagLLMRequestCompleted, turn.rest().Tag())
	require.Equal(t, "I was saying: hello.", deltaText(turn.seen), "a reset discards the text of the first attempt")
	require.Equal(t, story(`
		SessionStarted after 0
		SetRetryConfig
		UserMessage "Hello"
		LLMRequestStarted 1 scripted attempt N
		LLMAttemptEnded 1 handed_back
		LLMRequestStarted 1 scripted attempt N
		AssistantMessage "I was saying: hello."
		LLMRequestCompleted 1 stop
	`), withoutUnsentAttempts(w, c))
	require.NotContains(t, w.history(c), "ActivityTaskTimedOut", "the worker must hand the request back")
	w.replay(c, "handed-back")
}

// withoutUnsentAttempts returns the log with all attempts that were handed back as one. A stopping worker can receive the
// next attempt by a poll that was open; it hands that back unsent.
func withoutUnsentAttempts(w *world, c *client.Context) string {
	log := regexp.MustCompile(`attempt \d+`).ReplaceAllString(withoutPositions(w.log(c)), "attempt N")
	const handedBack = "LLMRequestStarted 1 scripted attempt N\nLLMAttemptEnded 1 handed_back\n"
	return regexp.MustCompile("("+handedBack+")+").ReplaceAllString(log, handedBack)
}

func TestContextsWorkWithoutNATS(t *testing.T) {
	t.Parallel()
	gate := llmtest.NewGate()
	w := newWorld(t, llmtest.Answer("Quiet", " now").HoldAfter(1, gate), llmtest.Answer("Yes"))
	conn := w.connection()
	conn.Stream = nil
	w.workerOn(conn, w.workerOptions())
	w.client = client.New(client.Options{Temporal: w.temporal, TaskQueue: w.queue})
	c := w.open("no-nats")
	turn := w.ask(c, "Speak")
	require.NoError(t, gate.Reached(w.ctx))
	turn.until(func(e event.Event) bool { return e.Tag() == event.TagLLMRequestStarted })
	last := w.say(c, "Stop")
	require.Equal(t, event.TagLLMRequestCompleted, last[len(last)-1].Tag())
	require.Contains(t, w.log(c), `LLMRequestInterrupted 1 new_user_input "Quiet"`)
	turn.rest()
	w.replay(c, "without-nats")
}

// A panic fails the workflow task, which Temporal repeats, so nothing that was accepted is lost.
func TestAContextContinuesWhenItsReducerNoLongerPanics(t *testing.T) {
	t.Parallel()
	w := newWorld(t, llmtest.Func(echo))
	c := w.open("reducer")
	panicked := make(chan struct{})
	once := sync.OnceFunc(func() { close(panicked) })
	stop := w.worker(func(o *contexts.Options) {
		o.Reduce = func(current reducer.ReducedContext, events ...event.Event) reducer.ReducedContext {
			for _, e := range events {
				body, ok := e.Body.(event.UserMessage)
				if ok && body.Content == "one too many" {
					once()
					panic("a defect")
				}
				if ok {
					body.Content = strings.ToUpper(body.Content)
					e.Body = body
				}
				current = reducer.Reduce(current, e)
			}
			return current
		}
	})
	w.say(c, "Hello")
	require.Equal(t, []string{"user: HELLO"}, contents(w.model.Requests()[0]))
	before := w.log(c)
	require.Contains(t, before, `UserMessage "Hello"`, "the log has the original message")
	for _, text := range []string{"one too many", "and another"} {
		sent, err := c.Send(w.ctx, event.New(event.UserMessage{Content: text, TriggersTurn: new(false)}))
		require.NoError(t, err)
		require.Empty(t, sent.EventIDs)
	}
	<-panicked
	stop()
	require.Equal(t, before, w.log(c))

	w.worker()
	w.say(c, "Bye")
	require.Contains(t, w.log(c), before)
	require.Regexp(t, `(?s)one too many.*and another.*Bye`, w.log(c))
	w.replay(c, "")
}
