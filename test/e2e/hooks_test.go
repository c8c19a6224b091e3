package e2e

import (
	"context"
	"strings"
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
