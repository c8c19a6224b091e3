package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/hook"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

func withHooks(hooks ...hook.Hook) func(*contexts.Options) {
	return func(o *contexts.Options) { o.Hooks = hooks }
}

// replaceNewest returns a verdict that replaces the newest message of a request.
func replaceNewest(r hook.Request, content, reason string) hook.Verdict {
	newest := r.Messages[len(r.Messages)-1]
	return hook.Verdict{Reason: reason, Change: &hook.Change{HookChange: event.HookChange{
		Messages: []event.ReplacedMessage{{EventID: newest.EventID, Content: content}},
	}}}
}

func newestOf(r hook.Request) string { return r.Messages[len(r.Messages)-1].Content }

func TestHooksChangeRequestsAndAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, llmtest.Answer("Hello [name],", " call me Bob."), llmtest.Answer("Fine."))
	w.worker(withHooks(
		hook.Hook{Name: "pii", Before: func(_ context.Context, r hook.Request) (hook.Verdict, error) {
			if newestOf(r) != "I am Ann" {
				return hook.Verdict{}, nil
			}
			return replaceNewest(r, "I am [name]", "a name"), nil
		}},
		hook.Hook{Name: "names", After: func(_ context.Context, _ hook.Request, r hook.Response) (hook.Verdict, error) {
			return hook.ReplaceText(strings.ReplaceAll(r.Text, "Bob", "[name]"), ""), nil
		}},
	))
	c := w.open("hooks")
	first := w.say(c, "I am Ann")
	require.Equal(t, "Hello [name], call me Bob.", deltaText(first), "viewers see the answer before the hook")
	w.say(c, "And you?")
	require.Equal(t, story(`
		SessionStarted after 0
		UserMessage "I am Ann"
		LLMRequestStarted 1 scripted attempt 1
		HookApplied pii changed the request (`+c.Name()+`:0002): a name
		HookApplied names changed the answer
		AssistantMessage "Hello [name], call me [name]."
		LLMRequestCompleted 1 stop
		UserMessage "And you?"
		LLMRequestStarted 2 scripted attempt 1
		AssistantMessage "Fine."
		LLMRequestCompleted 2 stop
	`), withoutPositions(w.log(c)))
	require.Equal(t, []string{"user: I am [name]"}, contents(w.model.Requests()[0]))
	require.Equal(t, []string{"user: I am Ann", "assistant: Hello [name], call me [name].", "user: And you?"}, contents(w.model.Requests()[1]))
	w.replay(c, "hooks")
}

func TestARefusedRequestReachesNoModel(t *testing.T) {
	t.Parallel()
	w := newWorld(t, llmtest.Answer("Fine."))
	w.worker(withHooks(hook.Hook{Name: "guard", Before: func(_ context.Context, r hook.Request) (hook.Verdict, error) {
		if newestOf(r) == "Something bad" {
			return hook.Refuse("off topic"), nil
		}
		return hook.Verdict{}, nil
	}}))
	c := w.open("refused")
	w.send(c, event.New(event.SetProviderConfig{ProviderID: "openai", Model: "other", AsFallback: true}))
	w.say(c, "Something bad")
	w.say(c, "Something good")
	require.Equal(t, story(`
		SessionStarted after 0
		SetProviderConfig
		UserMessage "Something bad"
		LLMRequestStarted 1 scripted attempt 1
		HookApplied guard refused the request: off topic
		LLMRequestFailed 1 after 0 retries: hook guard: off topic
		UserMessage "Something good"
		LLMRequestStarted 2 scripted attempt 1
		AssistantMessage "Fine."
		LLMRequestCompleted 2 stop
	`), withoutPositions(w.log(c)))
	require.Len(t, w.model.Requests(), 1)
	w.replay(c, "hook-refused-request")
}

func TestAHookStopsAWithheldAnswer(t *testing.T) {
	t.Parallel()
	gate := llmtest.NewGate()
	w := newWorld(t, llmtest.Answer("One", " two").HoldAfter(1, gate), llmtest.Answer("Three", " four"))
	w.worker(withHooks(hook.Hook{Name: "guard", Beside: true, Withhold: true, Before: func(ctx context.Context, r hook.Request) (hook.Verdict, error) {
		if newestOf(r) != "Count" {
			return hook.Verdict{}, nil
		}
		return hook.Refuse("no numbers"), gate.Reached(ctx)
	}}))
	c := w.open("beside")
	require.Empty(t, deltaText(w.say(c, "Count")), "a delta was published before the verdict")
	require.NoError(t, w.model.Aborted(w.ctx, 1))
	require.Equal(t, "Three four", deltaText(w.say(c, "Go on")), "the deltas follow the verdict")
	require.Equal(t, story(`
		SessionStarted after 0
		UserMessage "Count"
		LLMRequestStarted 1 scripted attempt 1
		HookApplied guard refused the request: no numbers
		LLMRequestFailed 1 after 0 retries: hook guard: no numbers
		UserMessage "Go on"
		LLMRequestStarted 2 scripted attempt 1
		AssistantMessage "Three four"
		LLMRequestCompleted 2 stop
	`), withoutPositions(w.log(c)))
	w.replay(c, "hook-withheld-answer")
}

func TestAnUnreachableHookFailsClosedOrOpen(t *testing.T) {
	dead := hook.Hook{Name: "guard", Before: func(context.Context, hook.Request) (hook.Verdict, error) {
		return hook.Verdict{}, errors.New("connection refused")
	}}
	t.Run("closed", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.worker(withHooks(dead))
		c := w.open("closed")
		w.send(c, event.New(event.SetRetryConfig{MaxRetries: 1, InitialDelayMs: 1}))
		w.say(c, "Hello")
		require.Equal(t, story(`
			SessionStarted after 0
			SetRetryConfig
			UserMessage "Hello"
			LLMRequestStarted 1 scripted attempt 1
			LLMRequestFailed 1 after 0 retries: hook guard: connection refused
		`), withoutPositions(w.log(c)))
		require.Empty(t, w.model.Requests())
		w.replay(c, "hook-failed-closed")
	})
	t.Run("open", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, llmtest.Answer("Hi"))
		open := dead
		open.OnFailure = hook.Open
		w.worker(withHooks(open))
		c := w.open("open")
		w.say(c, "Hello")
		require.Equal(t, story(`
			SessionStarted after 0
			UserMessage "Hello"
			LLMRequestStarted 1 scripted attempt 1
			HookApplied guard failed and left the request unchecked: connection refused
			AssistantMessage "Hi"
			LLMRequestCompleted 1 stop
		`), withoutPositions(w.log(c)))
		w.replay(c, "hook-failed-open")
	})
}

func TestARefusedToolCallIsNotExecuted(t *testing.T) {
	t.Parallel()
	p := newProbe(t, echoed)
	w := newWorld(t, llmtest.Answer("Let me look.").Calls(p.call("probe", "a")), llmtest.Answer("Again.").Calls(p.call("probe", "b")))
	attempts := 0
	w.worker(withHooks(hook.Hook{Name: "guard", After: func(_ context.Context, _ hook.Request, r hook.Response) (hook.Verdict, error) {
		attempts++
		if attempts == 2 {
			return hook.Refuse("no second " + r.Calls[0].Name), nil
		}
		return hook.Verdict{}, nil
	}}))
	c := w.open("refused-call")
	w.setTools(c, "probe")
	w.say(c, "Look")
	require.Equal(t, story(firstCall+`
		LLMRequestStarted 1 scripted attempt 2
		HookApplied guard refused the answer: no second probe
		LLMRequestFailed 1 after 0 retries: hook guard: no second probe
	`), withoutPositions(w.log(c)))
	require.Equal(t, []probeCall{{"call_a", "a"}}, p.seen())
	w.replay(c, "hook-refused-call")
}

// hookServer replaces the messages that the hooks of worker processes send it. It does not answer
// the call number held, and closes reached.
func hookServer(t *testing.T, held int32) (url string, reached <-chan struct{}) {
	var calls atomic.Int32
	isReached := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		n := calls.Add(1)
		if n == held {
			close(isReached)
			<-r.Context().Done()
			return
		}
		fmt.Fprintf(rw, "message of call %d", n)
	}))
	t.Cleanup(server.Close)
	return server.URL, isReached
}

// remoteHook asks a [hookServer] for the content of the newest message.
func remoteHook(url string) hook.Hook {
	return hook.Hook{Name: "remote", Timeout: testTimeout, Before: func(ctx context.Context, r hook.Request) (hook.Verdict, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
		if err != nil {
			return hook.Verdict{}, err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return hook.Verdict{}, err
		}
		defer response.Body.Close()
		content, err := io.ReadAll(response.Body)
		return replaceNewest(r, string(content), ""), err
	}}
}

func TestHooksOfAKilledWorkerRunAgain_Alone(t *testing.T) {
	needsTimelyHeartbeats(t)
	t.Run("while the hook runs", func(t *testing.T) {
		t.Parallel()
		w := newWorldOn(t, environment{timeout: faultTimeout}, llmtest.Answer("Hi"))
		hooks, reached := hookServer(t, 1)
		first := w.processWith(workerSettings{HookURL: hooks})
		c := w.open("killed-hook")
		turn := w.ask(c, "Hello")
		select {
		case <-reached:
		case <-w.ctx.Done():
			t.Fatal("no worker has called the hook")
		}
		first.kill()
		w.processWith(workerSettings{HookURL: hooks})
		require.Equal(t, event.TagLLMRequestCompleted, turn.rest().Tag())
		require.Equal(t, story(`
			SessionStarted after 0
			UserMessage "Hello"
			LLMRequestStarted 1 scripted attempt 1
			LLMAttemptEnded 1 lost
			LLMRequestStarted 1 scripted attempt 2
			HookApplied remote changed the request (`+c.Name()+`:0002)
			AssistantMessage "Hi"
			LLMRequestCompleted 1 stop
		`), withoutPositions(w.log(c)))
		require.Equal(t, []string{"user: message of call 2"}, contents(w.model.Requests()[0]))
		w.replay(c, "hooks-killed-before")
	})
	t.Run("after the change", func(t *testing.T) {
		t.Parallel()
		w := newWorldOn(t, environment{timeout: faultTimeout},
			llmtest.Answer("I was", " saying").HoldAfter(0, llmtest.NewGate()), llmtest.Answer("Hi"))
		hooks, _ := hookServer(t, 0)
		first := w.processWith(workerSettings{HookURL: hooks})
		c := w.open("killed-after-hook")
		turn := w.ask(c, "Hello")
		_, err := w.model.Request(w.ctx, 1)
		require.NoError(t, err)
		first.kill() // the result of an attempt reports the changes of hooks, and a lost attempt has none
		w.processWith(workerSettings{HookURL: hooks})
		require.Equal(t, event.TagLLMRequestCompleted, turn.rest().Tag())
		require.Equal(t, story(`
			SessionStarted after 0
			UserMessage "Hello"
			LLMRequestStarted 1 scripted attempt 1
			LLMAttemptEnded 1 lost
			LLMRequestStarted 1 scripted attempt 2
			HookApplied remote changed the request (`+c.Name()+`:0002)
			AssistantMessage "Hi"
			LLMRequestCompleted 1 stop
		`), withoutPositions(w.log(c)))
		require.Equal(t, []string{"user: message of call 1"}, contents(w.model.Requests()[0]))
		require.Equal(t, []string{"user: message of call 2"}, contents(w.model.Requests()[1]))
		w.replay(c, "hooks-killed-after")
	})
}
