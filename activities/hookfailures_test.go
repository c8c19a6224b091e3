package activities_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/hook"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

func TestAHookThatFailsIsClosedOrOpen(t *testing.T) {
	never := make(chan struct{})
	t.Cleanup(func() { close(never) })
	change := func(c hook.Change) before { return says(hook.Verdict{Change: &c}) }
	for name, test := range map[string]struct {
		before before
		want   string
	}{
		"an error": {func(context.Context, hook.Request) (hook.Verdict, error) { return hook.Verdict{}, errors.New("down") }, "down"},
		"a panic":  {func(context.Context, hook.Request) (hook.Verdict, error) { panic("oh") }, "the hook panicked: oh"},
		"no verdict": {func(context.Context, hook.Request) (hook.Verdict, error) {
			<-never
			return hook.Verdict{}, nil
		}, "the hook did not answer in time"},
		"an unknown message": {change(hook.Change{HookChange: event.HookChange{Messages: []event.ReplacedMessage{{EventID: "demo:0009", Content: "x"}}}}),
			"broken: invalid verdict: change: the request has no message demo:0009"},
		"an invalid change": {change(hook.Change{HookChange: event.HookChange{Settings: &event.RequestSettings{Temperature: new(9.0)}}}),
			"broken: invalid verdict: change: settings.temperature: want 0 to 2, got 9"},
		"a large change": {change(hook.Change{HookChange: event.HookChange{Instructions: strings.Repeat("x", event.MaxHookChangeBytes)}}),
			"broken: invalid verdict: change: 16403 bytes of JSON (at most 16384)"},
		"a change of an answer": {change(hook.Change{Text: new("x")}), "broken: invalid verdict: the change of a request cannot contain a text"},
	} {
		t.Run(name, func(t *testing.T) {
			h := hook.Hook{Name: "guard", Before: test.before}
			if strings.Contains(test.want, "in time") {
				h.Timeout = 200 * time.Millisecond
			}
			w := newEnvironment(t, newSession())
			w.use(h)
			isBroken := strings.HasPrefix(test.want, "broken: ")
			if !isBroken {
				_, err := w.generate()
				require.Equal(t, "hook guard: "+test.want, unsent(t, err).Message())
			}
			w.in.MaxAttempts = 1
			failed := w.failure()
			require.Equal(t, "hook guard: "+test.want, failed.Error)
			require.Equal(t, event.FailureHookFailed, failed.Kind)
			require.Equal(t, !isBroken, failed.Retryable)
			require.Equal(t, !isBroken, failed.Final, "Temporal has retried it")
			require.Empty(t, failed.Hooks)
			require.Empty(t, w.model.Requests())

			h.OnFailure = hook.Open
			w = newEnvironment(t, newSession(), llmtest.Answer("Hi"))
			w.use(h)
			result, err := w.generate()
			require.NoError(t, err)
			require.Equal(t, "Hello", w.model.Requests()[0].LastUser())
			require.Equal(t, []event.HookApplied{{
				RequestID: "demo:r0001", Attempt: 1, Hook: "guard", Stage: event.HookBefore, Outcome: event.HookFailed, Reason: test.want,
			}}, result.Hooks)
		})
	}
}

func TestAHookIsRetriedInsteadOfAnAttemptThatWasSent(t *testing.T) {
	for _, stage := range []event.HookStage{event.HookBeside, event.HookAfter} {
		for failures := 3; failures <= 4; failures++ {
			t.Run(fmt.Sprint(stage, failures), func(t *testing.T) {
				w := newEnvironment(t, newSession(event.SetRetryConfig{MaxRetries: 3, InitialDelayMs: 1}), llmtest.Answer("Hi"))
				calls := 0
				check := func() (hook.Verdict, error) {
					if calls++; calls <= failures {
						return hook.Verdict{}, errors.New("down")
					}
					return hook.Verdict{}, nil
				}
				h := hook.Hook{Name: "guard", After: func(context.Context, hook.Request, hook.Response) (hook.Verdict, error) { return check() }}
				if stage == event.HookBeside {
					h = hook.Hook{Name: "guard", Beside: true, Before: func(ctx context.Context, _ hook.Request) (hook.Verdict, error) {
						if _, err := w.model.Request(ctx, 1); err != nil {
							return hook.Verdict{}, err
						}
						return check()
					}}
				}
				w.use(h)
				result := w.generated()
				require.Equal(t, 4, calls)
				if failures == 3 {
					require.Equal(t, reducer.Completed, result.Outcome)
					require.Equal(t, "Hi", result.Text)
					return
				}
				require.Equal(t, reducer.Failed, result.Outcome)
				require.Equal(t, "hook guard: down", result.Error)
				require.Equal(t, event.FailureHookFailed, result.Kind)
				require.True(t, result.Retryable)
				require.True(t, result.Final, "another attempt would cost again")
			})
		}
	}
}

func TestABrokenHookAfterTheAnswerIsNotRetried(t *testing.T) {
	w := newEnvironment(t, newSession(), llmtest.Answer("Hi"))
	calls := 0
	w.use(hook.Hook{Name: "guard", After: func(context.Context, hook.Request, hook.Response) (hook.Verdict, error) {
		calls++
		return hook.Verdict{}, fmt.Errorf("%w: status 404", hook.ErrBroken)
	}})
	failed := w.failure()
	require.False(t, failed.Retryable)
	require.Equal(t, "hook guard: broken: status 404", failed.Error)
	require.Equal(t, 1, calls)
}

func TestHooksCountTowardsTheTimeoutOfTheAttempt(t *testing.T) {
	w := newEnvironment(t, newSession(event.SetTimeout{TimeoutMs: 100}))
	w.use(hook.Hook{Name: "slow", Timeout: time.Minute, OnFailure: hook.Open, Before: func(ctx context.Context, _ hook.Request) (hook.Verdict, error) {
		<-ctx.Done()
		return hook.Verdict{}, nil
	}})
	_, err := w.generate()
	require.Equal(t, "timeout", unsent(t, err).Type())
	require.Empty(t, w.model.Requests())
}

func TestNoPartOfAnUncheckedAnswerIsInAnError(t *testing.T) {
	for answer, format := range map[string]event.ResponseFormat{
		"I am Ann":         {Type: event.FormatJSONObject},
		`{"name":"Ann"}`:   {Type: event.FormatJSONSchema, Schema: event.Object(`{"type":"object","properties":{"name":{"type":"string","pattern":"^$"}}}`)},
		`{"Ann":"a name"}`: {Type: event.FormatJSONSchema, Schema: event.Object(`{"type":"object","additionalProperties":false}`)},
	} {
		w := newEnvironment(t, newSession(event.SetRequestSettings{ResponseFormat: &format}), llmtest.Answer(answer))
		w.use(hook.Hook{Name: "pii", After: saysAfter(hook.Verdict{})})
		require.Equal(t, "openai: invalid answer: it does not have the response format", w.failure().Error)
	}
}
