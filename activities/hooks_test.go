package activities_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/hook"
	"github.com/seed-9ed7edd4/chronicle/internal/stream"
	"github.com/seed-9ed7edd4/chronicle/internal/stream/streamtest"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

type (
	before = func(context.Context, hook.Request) (hook.Verdict, error)
	after  = func(context.Context, hook.Request, hook.Response) (hook.Verdict, error)
)

func says(v hook.Verdict) before {
	return func(context.Context, hook.Request) (hook.Verdict, error) { return v, nil }
}

func saysAfter(v hook.Verdict) after {
	return func(context.Context, hook.Request, hook.Response) (hook.Verdict, error) { return v, nil }
}

func (w *environment) use(hooks ...hook.Hook) {
	w.t.Helper()
	require.NoError(w.t, hook.Validate(hooks))
	w.hooks = hooks
	w.reset(nil)
}

// published returns the text of all deltas of an attempt that has ended.
func (w *environment) published(sub *stream.Subscription) (text string) {
	w.t.Helper()
	w.stream.PublishProgress("demo", event.ToolProgress{RequestID: "demo:r0001", ToolCallID: "end"})
	waited := time.After(time.Minute)
	for {
		select {
		case m := <-sub.Messages():
			d, ok := streamtest.Delta(sub, m)
			if ok && d.Progress != nil {
				return text
			}
			text += d.Delta + d.Reasoning
		case <-waited:
			require.FailNow(w.t, "the end of the deltas is missing")
		}
	}
}

func TestHooksChangeTheRequestInOrder(t *testing.T) {
	w := newEnvironment(t, newSession(event.SystemPrompt{Content: "Be brief."}), llmtest.Answer("Hi").Expect(func(r llmtest.Request) error {
		if got := fmt.Sprint(r.Messages[0].Content, "|", r.LastUser(), "|", r.Temperature); got != "Be brief.\n\nNo names.|[name]!|0.5" {
			return errors.New(got)
		}
		return nil
	}))
	change := event.HookChange{
		Instructions: "No names.", Messages: []event.ReplacedMessage{{EventID: "demo:0002", Content: "[name]"}},
		Settings: &event.RequestSettings{Temperature: new(0.5)},
	}
	var seen hook.Request
	w.use(
		hook.Hook{Name: "pii", Before: says(hook.Verdict{Change: &hook.Change{HookChange: change}, Reason: "a name"})},
		hook.Hook{Name: "passes", Before: says(hook.Verdict{})},
		hook.Hook{Name: "marks", Before: func(_ context.Context, r hook.Request) (hook.Verdict, error) {
			seen = r
			return hook.Verdict{Change: &hook.Change{HookChange: event.HookChange{
				Messages: []event.ReplacedMessage{{EventID: "demo:0002", Content: r.Messages[1].Content + "!"}},
			}}}, nil
		}},
	)
	result := w.generated()
	want := []event.HookApplied{
		{RequestID: "demo:r0001", Attempt: 1, Hook: "pii", Stage: event.HookBefore, Outcome: event.HookChanged, Reason: "a name", Change: &change},
		{RequestID: "demo:r0001", Attempt: 1, Hook: "marks", Stage: event.HookBefore, Outcome: event.HookChanged,
			Change: &event.HookChange{Messages: []event.ReplacedMessage{{EventID: "demo:0002", Content: "[name]!"}}}},
	}
	require.Equal(t, want, result.Hooks)
	require.Equal(t, "demo demo:r0001 1 openai scripted", fmt.Sprint(seen.ContextName, " ", seen.RequestID, " ", seen.Attempt, " ", seen.ProviderID, " ", seen.Model))
	require.Equal(t, "Be brief.\n\nNo names.", seen.Messages[0].Content)
}

func TestARefusedRequestIsNotSent(t *testing.T) {
	w := newEnvironment(t, newSession())
	w.use(hook.Hook{Name: "guard", Before: says(hook.Refuse("it contains password=hunter2"))},
		hook.Hook{Name: "never", Before: func(context.Context, hook.Request) (hook.Verdict, error) { panic("asked") }})
	details := w.failure()
	require.Equal(t, "hook guard: it contains password=[removed]", details.Error)
	require.Equal(t, event.FailureRefusedByHook, details.Kind)
	require.False(t, details.Retryable)
	require.Equal(t, []event.HookApplied{{
		RequestID: "demo:r0001", Attempt: 1, Hook: "guard", Stage: event.HookBefore, Outcome: event.HookRefused, Reason: "it contains password=[removed]",
	}}, details.Hooks)
	require.Empty(t, w.model.Requests())
}

func TestALongReasonIsTruncatedOnce(t *testing.T) {
	w := newEnvironment(t, newSession())
	w.use(hook.Hook{Name: "guard", Before: says(hook.Refuse(strings.Repeat("x", 500)))})
	failed := w.failure()
	want := strings.Repeat("x", 400) + "… (500 bytes in total)"
	require.Equal(t, "hook guard: "+want, failed.Error)
	require.Equal(t, want, failed.Hooks[0].Reason)
}

func TestTheChangesOfARequestAreBounded(t *testing.T) {
	w := newEnvironment(t, newSession())
	large := says(hook.Verdict{Change: &hook.Change{HookChange: event.HookChange{Instructions: strings.Repeat("x", 15<<10)}}})
	w.use(hook.Hook{Name: "a", Before: large}, hook.Hook{Name: "b", Before: large}, hook.Hook{Name: "c", Before: large})
	require.Contains(t, w.failure().Error, "hook c: broken: invalid verdict: all changes of the request have 46137 bytes of JSON (at most 32768)")
}

func TestAHookBesideTheAnswerStopsIt(t *testing.T) {
	gate := llmtest.NewGate()
	w := newEnvironment(t, newSession(), llmtest.Answer("One", " two").HoldAfter(1, gate))
	sub := w.connect()
	w.use(hook.Hook{Name: "guard", Beside: true, Withhold: true, Before: func(ctx context.Context, _ hook.Request) (hook.Verdict, error) {
		return hook.Refuse("off topic"), gate.Reached(ctx)
	}})
	details := w.failure()
	require.False(t, details.Retryable)
	require.Equal(t, "hook guard: off topic", details.Error)
	require.Equal(t, 8, details.InputTokens, "the usage is that of the beginning of the answer")
	require.Equal(t, event.HookBeside, details.Hooks[0].Stage)
	require.NoError(t, w.model.Aborted(t.Context(), 1))
	require.Empty(t, w.published(sub), "a delta was published before the verdict")
}

func TestAnAnswerWaitsForTheHookBesideIt(t *testing.T) {
	w := newEnvironment(t, newSession(), llmtest.Answer("One", " two"))
	sub := w.connect()
	w.use(hook.Hook{Name: "guard", Beside: true, Withhold: true, Before: func(ctx context.Context, _ hook.Request) (hook.Verdict, error) {
		_, err := w.model.Request(ctx, 1)
		return hook.Verdict{}, err
	}})
	result := w.generated()
	require.Equal(t, "One two", result.Text)
	require.Empty(t, result.Hooks)
	require.Equal(t, "One two", w.published(sub))
}

func TestAHookBesideTheAnswerCannotChangeIt(t *testing.T) {
	w := newEnvironment(t, newSession(), llmtest.Answer("One"))
	w.use(hook.Hook{Name: "guard", Beside: true, Before: func(ctx context.Context, _ hook.Request) (hook.Verdict, error) {
		_, err := w.model.Request(ctx, 1)
		return hook.Verdict{Change: &hook.Change{HookChange: event.HookChange{Instructions: "x"}}}, err
	}})
	require.Equal(t, "hook guard: broken: invalid verdict: a Beside hook cannot change the request (it was already sent)", w.failure().Error)
}

func TestAHookChangesTheAnswer(t *testing.T) {
	w := newEnvironment(t, newSession(), llmtest.Answer("I am", " Ann").Thinking("Ann asks"))
	sub := w.connect()
	w.use(hook.Hook{Name: "pii", After: func(_ context.Context, _ hook.Request, r hook.Response) (hook.Verdict, error) {
		return hook.ReplaceText(strings.ReplaceAll(r.Text, "Ann", "[name]"), r.Reasoning), nil
	}}, hook.Hook{Name: "marks", Withhold: true, After: func(_ context.Context, _ hook.Request, r hook.Response) (hook.Verdict, error) {
		return hook.ReplaceText(r.Text+"!", ""), nil
	}})
	result := w.generated()
	require.Equal(t, reducer.Completed, result.Outcome)
	require.Equal(t, "I am [name]!", result.Text)
	require.Empty(t, result.Reasoning)
	require.Nil(t, result.ProviderState)
	require.Equal(t, []event.HookApplied{
		{RequestID: "demo:r0001", Attempt: 1, Hook: "pii", Stage: event.HookAfter, Outcome: event.HookChanged, Reason: "Ann asks"},
		{RequestID: "demo:r0001", Attempt: 1, Hook: "marks", Stage: event.HookAfter, Outcome: event.HookChanged},
	}, result.Hooks)
	require.Empty(t, w.published(sub), "a delta was published although a hook withholds them")
}

func TestAChangedAnswerMustHaveTheResponseFormat(t *testing.T) {
	const answer = `{"name":"Ann"}`
	for changed, want := range map[string]string{
		`{"name":"[name]"}`: "",
		`{"nick":"Ann"}`:    "hook pii: broken: invalid verdict: the changed answer does not have the response format",
		"[removed]":         "hook pii: broken: invalid verdict: the changed answer does not have the response format",
	} {
		w := newEnvironment(t, newSession(inPerson), llmtest.Answer(answer))
		w.use(hook.Hook{Name: "pii", After: saysAfter(hook.ReplaceText(changed, ""))})
		result := w.generated()
		require.Equal(t, want, result.Error)
		if want == "" {
			require.Equal(t, changed, result.Text)
			continue
		}
		require.Equal(t, reducer.Failed, result.Outcome)
		require.False(t, result.Retryable)

		w = newEnvironment(t, newSession(inPerson), llmtest.Answer(answer))
		w.use(hook.Hook{Name: "pii", OnFailure: hook.Open, After: saysAfter(hook.ReplaceText(changed, ""))})
		result = w.generated()
		require.Equal(t, answer, result.Text)
		require.Equal(t, event.HookFailed, result.Hooks[0].Outcome)
	}
}

func TestARefusedAnswerIsNotRecorded(t *testing.T) {
	model := &caller{answer: activities.Answer{
		Text: "Let me look", Usage: event.Usage{InputTokens: 7, OutputTokens: 2}, FinishReason: "tool_calls",
		Calls: []reducer.ToolCall{{ID: "call_1", Name: "ask", Arguments: `{"question":"who?"}`}},
	}}
	var seen hook.Response
	guard := hook.Hook{Name: "guard", After: func(_ context.Context, _ hook.Request, r hook.Response) (hook.Verdict, error) {
		seen = r
		return hook.Refuse("no questions"), nil
	}}
	details, err := answeredWith(t, activities.Options{Models: model, Hooks: []hook.Hook{guard}}, event.SetTools{Tools: event.ToolList{ask}})
	require.NoError(t, err)
	require.Equal(t, reducer.Failed, details.Outcome)
	require.False(t, details.Retryable)
	require.Empty(t, details.Text)
	require.Empty(t, details.Calls)
	require.Equal(t, event.FailureRefusedByHook, details.Kind)
	require.Equal(t, event.Usage{InputTokens: 7, OutputTokens: 2}, details.Usage)
	require.Equal(t, hook.Response{Text: "Let me look", Calls: []hook.Call{{Name: "ask", Arguments: []byte(`{"question":"who?"}`)}}}, seen)
}

// An answer can complete just before the timeout, and a hook refuse it just after.
func TestARefusalAfterTheTimeoutIsFinal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model := &caller{answer: activities.Answer{Text: "One", FinishReason: "stop"}}
		guard := hook.Hook{Name: "guard", After: func(context.Context, hook.Request, hook.Response) (hook.Verdict, error) {
			deadline, _ := model.ctx.Deadline()
			<-time.After(time.Until(deadline))
			return hook.Refuse("no"), nil
		}}
		result, err := answeredWith(t, activities.Options{Models: model, Hooks: []hook.Hook{guard}}, event.SetTimeout{TimeoutMs: 1000})
		require.NoError(t, err)
		require.Equal(t, "hook guard: no", result.Error)
		require.False(t, result.Retryable)
	})
}

// The log contains the beginning of invalid arguments.
func TestHooksSeeTheErrorOfAnInvalidCall(t *testing.T) {
	model := &caller{answer: activities.Answer{FinishReason: "tool_calls", Calls: []reducer.ToolCall{{ID: "call_1", Name: "ask", Arguments: `I am Ann`}}}}
	guard := hook.Hook{Name: "pii", After: func(_ context.Context, _ hook.Request, r hook.Response) (hook.Verdict, error) {
		if strings.Contains(r.Calls[0].Error, "Ann") {
			return hook.Refuse("a name"), nil
		}
		return hook.Verdict{}, nil
	}}
	result, err := answeredWith(t, activities.Options{Models: model, Hooks: []hook.Hook{guard}}, event.SetTools{Tools: event.ToolList{ask}})
	require.NoError(t, err)
	require.Equal(t, "hook pii: a name", result.Error)
}

func TestHooksCheckAPartialAnswer(t *testing.T) {
	never := make(chan struct{})
	t.Cleanup(func() { close(never) })
	for name, test := range map[string]struct {
		hook   hook.Hook
		text   string
		report string // outcome and reason
	}{
		"passes":  {hook.Hook{After: saysAfter(hook.Verdict{})}, "One", ""},
		"changes": {hook.Hook{After: saysAfter(hook.ReplaceText("1", ""))}, "1", "changed "},
		"refuses": {hook.Hook{After: saysAfter(hook.Refuse("no"))}, "", "refused no"},
		"fails": {hook.Hook{After: func(context.Context, hook.Request, hook.Response) (hook.Verdict, error) {
			return hook.Verdict{}, errors.New("down")
		}}, "", "refused not checked: down"},
		"fails open": {hook.Hook{OnFailure: hook.Open, After: func(context.Context, hook.Request, hook.Response) (hook.Verdict, error) {
			return hook.Verdict{}, errors.New("down")
		}}, "One", "failed down"},
		"refuses beside": {hook.Hook{Beside: true, Before: func(ctx context.Context, _ hook.Request) (hook.Verdict, error) {
			return hook.Refuse("no"), nil
		}}, "", "refused no"},
		"does not answer beside": {hook.Hook{Beside: true, Timeout: time.Minute, Before: func(context.Context, hook.Request) (hook.Verdict, error) {
			<-never
			return hook.Verdict{}, nil
		}}, "", "refused not checked: the hook did not answer in time (3s after the end of the answer: stopped: cancelled)"},
	} {
		t.Run(name, func(t *testing.T) {
			gate := llmtest.NewGate()
			w := newEnvironment(t, newSession(), llmtest.Answer("One", " two").HoldAfter(1, gate))
			sub := w.connect()
			partial, isStopped := false, make(chan struct{})
			h := test.hook
			h.Name = "guard"
			if check := h.After; check != nil {
				h.After = func(ctx context.Context, r hook.Request, response hook.Response) (hook.Verdict, error) {
					partial = response.Partial && response.Text == "One"
					return check(ctx, r, response)
				}
			} else if check := h.Before; test.report == "refused no" {
				h.Before = func(ctx context.Context, r hook.Request) (hook.Verdict, error) {
					<-isStopped
					partial = true
					return check(ctx, r)
				}
			} else {
				partial = true
			}
			w.use(h)
			stopped := make(chan error, 1)
			go func() {
				awaitDelta(t, sub, "One")
				err := w.stream.Stop(t.Context(), "demo", stopFor(event.ReasonCancelled))
				stopped <- errors.Join(err, w.model.Aborted(t.Context(), 1))
				close(isStopped)
			}()
			result := w.generated()
			require.NoError(t, <-stopped)
			require.True(t, partial)
			require.Equal(t, reducer.Interrupted, result.Outcome)
			require.Equal(t, event.ReasonCancelled, result.Reason)
			require.Equal(t, test.text, result.Text)
			report := ""
			for _, r := range result.Hooks {
				report += fmt.Sprint(r.Outcome, " ", r.Reason)
			}
			require.Equal(t, test.report, report)
		})
	}
}

func TestAnAttemptStopsWhileAHookRuns(t *testing.T) {
	for name, stop := range map[string]func(w *environment) error{
		"for a person": func(w *environment) error { return w.stream.Stop(t.Context(), "demo", stopFor(event.ReasonCancelled)) },
		"for newer input": func(w *environment) error {
			return w.stream.Stop(t.Context(), "demo", stopFor(event.ReasonNewUserInput))
		},
		"for a shutdown": func(w *environment) error {
			close(w.handBack)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newEnvironment(t, newSession())
			w.handBack, w.in.MaxAttempts = make(chan struct{}), 1
			w.connect()
			ended := make(chan error, 1)
			stopped := make(chan error, 1)
			w.use(hook.Hook{Name: "slow", Timeout: time.Minute, OnFailure: hook.Open, Before: func(ctx context.Context, _ hook.Request) (hook.Verdict, error) {
				go func() { stopped <- stop(w) }()
				<-ctx.Done()
				ended <- nil
				return hook.Verdict{}, ctx.Err()
			}})
			result := w.generated()
			require.NoError(t, <-stopped)
			require.NoError(t, <-ended)
			require.Empty(t, result.Hooks, "the hook did not fail")
			want := reducer.Withdrawn
			if name == "for a shutdown" {
				want = reducer.HandedBack
			}
			require.Equal(t, want, result.Outcome)
			require.Empty(t, w.model.Requests())
		})
	}
}
