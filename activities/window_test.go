package activities_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// longSession has messages of 1,000 tokens and then "Hello".
func longSession(messages int, settings ...event.Body) reducer.Session {
	s, _ := reducer.Step(reducer.NewSession("demo"), reducer.Opened{At: time.Now()})
	var bodies []event.Body
	for i := range messages {
		text := strings.Repeat("word ", 1000)
		if i%2 == 0 {
			bodies = append(bodies, event.UserMessage{Content: text})
		} else {
			bodies = append(bodies, event.AssistantMessage{Content: text})
		}
	}
	var events []event.Event
	for _, body := range append(append(settings, bodies...), event.UserMessage{Content: "Hello"}) {
		events = append(events, event.New(body))
	}
	s, _ = reducer.Step(s, reducer.Received{At: time.Now().Add(-time.Minute), Events: events})
	return s
}

func TestARequestThatFillsTheWindowIsNotSent(t *testing.T) {
	w := newEnvironment(t, longSession(8))
	w.window, w.in.MayCompact = 10_000, true
	w.reset(nil)
	result := w.generated()
	require.Equal(t, reducer.TooLong, result.Outcome)
	require.Equal(t, event.WindowConfigured, result.Overflow.Source)
	require.Equal(t, 10_000, result.Overflow.Window)
	require.InDelta(t, 8000, result.Overflow.Tokens, 100)
	require.Empty(t, w.model.Requests())
}

func TestARequestThatFitsIsSent(t *testing.T) {
	for name, test := range map[string]struct {
		session    reducer.Session
		window     int
		mayCompact bool
	}{
		"below the trigger":          {longSession(7), 10_000, true},
		"below a higher trigger":     {longSession(8, event.SetCompaction{TriggerPercent: new(90)}), 10_000, true},
		"without a known window":     {longSession(8), 0, true},
		"without a compaction":       {longSession(8), 10_000, false},
		"below the output's share":   {longSession(6, event.SetRequestSettings{MaxTokens: new(2000)}), 10_000, true},
		"in the window of the model": {longSession(8), 20_000, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newEnvironment(t, test.session, llmtest.Answer("Hi"))
			w.window, w.in.MayCompact = test.window, test.mayCompact
			w.reset(nil)
			result := w.generated()
			require.Equal(t, reducer.Completed, result.Outcome)
		})
	}
}

func TestTheOutputIsPartOfTheWindow(t *testing.T) {
	w := newEnvironment(t, longSession(7, event.SetRequestSettings{MaxTokens: new(2000)}))
	w.window, w.in.MayCompact = 10_000, true
	w.reset(nil)
	result := w.generated()
	require.Equal(t, reducer.TooLong, result.Outcome)
	require.Equal(t, 8000, result.Overflow.Window)
}

func TestTheSmallerWindowCounts(t *testing.T) {
	for name, test := range map[string]struct {
		configured, learned, want int
		source                    event.WindowSource
	}{
		"learned only":    {0, 6000, 6000, event.WindowLearned},
		"learned smaller": {10_000, 6000, 6000, event.WindowLearned},
		"learned larger":  {10_000, 12_000, 10_000, event.WindowConfigured},
	} {
		t.Run(name, func(t *testing.T) {
			session := longSession(9)
			session.Windows = []reducer.Window{{ProviderID: "openai", Model: "other", Tokens: 1}, {ProviderID: "openai", Model: "scripted", Tokens: test.learned}}
			w := newEnvironment(t, session)
			w.window, w.in.MayCompact = test.configured, true
			w.reset(nil)
			result := w.generated()
			require.Equal(t, reducer.TooLong, result.Outcome)
			require.Equal(t, test.want, result.Overflow.Window)
			require.Equal(t, test.source, result.Overflow.Source)
		})
	}
}

func TestARejectionShowsTheWindow(t *testing.T) {
	for name, test := range map[string]struct {
		configured int
		refusal    string
		window     int // 0: no overflow
		source     event.WindowSource
	}{
		"without numbers":              {0, "too long", 3628, event.WindowLearned},
		"with the window":              {0, "This model's maximum context length is 3000 tokens.", 3000, event.WindowLearned},
		"with a window that would fit": {0, "This model's maximum context length is 5000 tokens.", 3628, event.WindowLearned},
		"counted as here":              {0, "prompt is too long: 4032 tokens > 3000 maximum", 3000, event.WindowLearned},
		"counted higher":               {0, "prompt is too long: 8064 tokens > 6000 maximum", 3010, event.WindowLearned},
		"counted lower":                {0, "prompt is too long: 3100 tokens > 3000 maximum", 3000, event.WindowLearned},
		"with too much output":         {0, "This endpoint's maximum context length is 8000 tokens. However, you requested about 12032 tokens (4032 of text input, 8000 in the output).", 0, ""},
		"although a window is known":   {2000, "too long", 2000, event.WindowConfigured},
	} {
		t.Run(name, func(t *testing.T) {
			w := newEnvironment(t, longSession(4), llmtest.Error(400, "context_length_exceeded", test.refusal))
			w.window = test.configured
			w.reset(nil)
			details := w.failure()
			require.False(t, details.Retryable)
			require.Equal(t, event.FailureContextTooLong, details.Kind)
			if test.window == 0 {
				require.Nil(t, details.Overflow)
				return
			}
			require.InDelta(t, 4032, details.Overflow.Tokens, 15)
			require.InDelta(t, test.window, details.Overflow.Window, 15)
			require.Equal(t, test.source, details.Overflow.Source)
		})
	}
}
