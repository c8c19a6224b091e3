package reducer_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// reduce folds bodies into a fresh context, with ids from demo:0001.
func reduce(bodies ...event.Body) reducer.ReducedContext {
	return reducer.Reduce(reducer.Initial(), numbered(1, bodies...)...)
}

func numbered(first int, bodies ...event.Body) []event.Event {
	events := make([]event.Event, len(bodies))
	for i, body := range bodies {
		events[i] = event.New(body)
		events[i].ID = event.FormatID("demo", first+i)
	}
	return events
}

func TestReduce(t *testing.T) {
	t.Run("builds messages from content events", func(t *testing.T) {
		result := reducer.Reduce(reducer.Initial(),
			event.New(event.SystemPrompt{Content: "You are helpful"}),
			event.New(event.UserMessage{Content: "Hello"}),
			event.New(event.AssistantMessage{Content: "Hi there!"}),
		)
		require.Len(t, result.Messages, 3)
		require.Equal(t, reducer.Message{Role: reducer.RoleSystem, Content: "You are helpful"}, result.Messages[0])
	})
	t.Run("applies config events", func(t *testing.T) {
		result := reducer.Reduce(reducer.Initial(), event.New(event.SetRetryConfig{MaxRetries: 5, InitialDelayMs: 200}))
		require.Equal(t, 5, result.Config.Retry.MaxRetries)
		require.Equal(t, int64(200), result.Config.Retry.InitialDelayMs)
	})
	t.Run("incrementally applies new events", func(t *testing.T) {
		initial := reducer.Reduce(reducer.Initial(), event.New(event.UserMessage{Content: "Hello"}))
		updated := reducer.Reduce(initial,
			event.New(event.AssistantMessage{Content: "Hi!"}),
			event.New(event.UserMessage{Content: "How are you?"}),
		)
		require.Len(t, updated.Messages, 3)
	})
}

func TestANewContextHasTheDefaults(t *testing.T) {
	require.Equal(t, reducer.ReducedContext{
		Messages: []reducer.Message{},
		Config: reducer.Config{
			Primary:   reducer.ProviderConfig{ProviderID: "openai", Model: "gpt-4o-mini", IsDefault: true},
			Retry:     reducer.RetryConfig{MaxRetries: 3, InitialDelayMs: 100, BackoffFactor: 2, MaxDelayMs: 60_000},
			TimeoutMs: 30_000,
			Delivery:  reducer.Delivery{Policy: event.PolicyInterrupt, QuietPeriodMs: 10, MaxWaitMs: 500},
		},
	}, reducer.Initial())
	require.NoError(t, reducer.Validate(reducer.Initial()))
}

// brief describes messages, a line each.
func brief(messages []reducer.Message) []string {
	out := []string{}
	for _, m := range messages {
		line := fmt.Sprintf("%s: %s", m.Role, m.Content)
		if m.Partial {
			line += " (partial)"
		}
		if m.Summary {
			line = "summary: " + strings.TrimPrefix(m.Content, event.SummaryIntroduction)
		}
		for _, a := range m.Attachments {
			line += " +" + a.Name()
		}
		for _, c := range m.ToolCalls {
			line += " " + c.ID + "=" + c.Name + c.Arguments
		}
		if m.ToolCallID != "" {
			line += " for " + m.ToolCallID
		}
		out = append(out, line)
	}
	return out
}

func TestMessages(t *testing.T) {
	type bodies = []event.Body
	user := func(s string) event.Body { return event.UserMessage{Content: s} }
	says := func(s string) event.Body { return event.AssistantMessage{Content: s} }
	answer := func(s string, through int) event.Body {
		return event.AssistantMessage{Content: s, ThroughEventID: event.FormatID("demo", through)}
	}
	call := func(id, message string) event.Body {
		return event.ToolCall{ToolCallID: id, MessageID: message, ToolName: "weather"}
	}
	// Of the request demo:r0001.
	step := func(s string, through int) event.Body {
		return event.AssistantMessage{Content: s, RequestID: "demo:r0001", ThroughEventID: event.FormatID("demo", through)}
	}
	stepCall := func(id string, message int) event.Body {
		return event.ToolCall{ToolCallID: id, MessageID: event.FormatID("demo", message), ToolName: "weather", RequestID: "demo:r0001", Parameters: json.RawMessage(`{"n":1}`)}
	}
	result := func(id, value string) event.Body {
		return event.ToolResult{ToolCallID: id, Value: json.RawMessage(value)}
	}
	file := func(path string) event.Body {
		return event.FileAttachment{Source: event.Source{Type: event.SourceFile, Path: path}, MediaType: "text/plain"}
	}
	for _, tc := range []struct {
		name   string
		events bodies
		want   []string
	}{
		{"no events", nil, []string{}},
		{"a system prompt goes in front", bodies{user("a"), event.SystemPrompt{Content: "s"}}, []string{"system: s", "user: a"}},
		{"a system prompt is replaced", bodies{event.SystemPrompt{Content: "s"}, user("a"), event.SystemPrompt{Content: "t"}},
			[]string{"system: t", "user: a"}},
		{"an empty system prompt removes it", bodies{event.SystemPrompt{Content: "s"}, user("a"), event.SystemPrompt{}},
			[]string{"user: a"}},
		{"a removed system prompt can be set again", bodies{event.SystemPrompt{Content: "s"}, user("a"), event.SystemPrompt{}, event.SystemPrompt{Content: "t"}},
			[]string{"system: t", "user: a"}},
		{"attachments wait for the next user message", bodies{file("a.txt"), says("x"), file("b.txt"), user("see"), user("and")},
			[]string{"assistant: x", "user: see +a.txt +b.txt", "user: and"}},
		{"a message that triggers no turn is a message", bodies{event.UserMessage{Content: "a", TriggersTurn: new(false)}}, []string{"user: a"}},

		{"an answer without later messages is last", bodies{user("a"), answer("x", 1)}, []string{"user: a", "assistant: x"}},
		{"a late answer precedes later messages", bodies{user("a"), user("b"), answer("x", 1)},
			[]string{"user: a", "assistant: x", "user: b"}},
		{"a partial answer follows the messages of its request", bodies{
			user("a"), user("b"), event.AssistantMessage{Content: "x", ThroughEventID: "demo:0001", Partial: true}, answer("y", 3),
		}, []string{"user: a", "assistant: x (partial)", "user: b", "assistant: y"}},
		{"two late answers follow their messages", bodies{user("a"), user("b"), answer("x", 1), user("c"), answer("y", 3)},
			[]string{"user: a", "assistant: x", "user: b", "assistant: y", "user: c"}},
		{"an answer to an unknown event is last", bodies{user("a"), says("x"), event.AssistantMessage{Content: "y", ThroughEventID: "m1"}},
			[]string{"user: a", "assistant: x", "assistant: y"}},
		{"no answer precedes a newer system prompt", bodies{user("a"), event.SystemPrompt{Content: "s"}, user("b"), answer("x", 1)},
			[]string{"system: s", "user: a", "assistant: x", "user: b"}},
		{"an answer to a request without messages is first", bodies{event.SetTimeout{TimeoutMs: 1}, user("b"), answer("x", 1)},
			[]string{"assistant: x", "user: b"}},
		{"the answers of a turn follow each other", bodies{user("a"), step("x", 1), stepCall("c1", 2), result("c1", `1`), step("y", 4)},
			[]string{"user: a", `assistant: x c1=weather{"n":1}`, "tool: 1 for c1", "assistant: y"}},
		{"the answers of a turn precede queued messages", bodies{
			user("a"), step("x", 1), stepCall("c1", 2), user("b"), result("c1", `1`), step("", 1), stepCall("c2", 6), result("c2", `2`), step("z", 1),
		}, []string{"user: a", `assistant: x c1=weather{"n":1}`, "tool: 1 for c1", `assistant:  c2=weather{"n":1}`, "tool: 2 for c2", "assistant: z", "user: b"}},
		{"an answer follows the messages that joined at its step", bodies{
			user("a"), step("x", 1), stepCall("c1", 2), user("b"), result("c1", `1`), step("y", 5),
		}, []string{"user: a", `assistant: x c1=weather{"n":1}`, "tool: 1 for c1", "user: b", "assistant: y"}},
		{"an approval can replace the arguments of a call", bodies{
			user("a"), step("x", 1), stepCall("c1", 2), stepCall("c2", 2),
			event.ApprovalDecided{ToolCallID: "c1", Decision: event.Approve, Parameters: json.RawMessage(`{"n":2}`)},
			event.ApprovalDecided{ToolCallID: "c2", Decision: event.Approve},
		}, []string{"user: a", `assistant: x c1=weather{"n":2} c2=weather{"n":1}`}},
		{"a late answer does not separate a call from its result", bodies{
			user("a"), says("x"), call("c1", ""), user("b"), result("c1", `1`), answer("y", 2),
		}, []string{"user: a", "assistant: x c1=weather", "tool: 1 for c1", "assistant: y", "user: b"}},

		{"a call belongs to the newest assistant message", bodies{user("a"), says("x"), call("c1", ""), call("c2", "")},
			[]string{"user: a", "assistant: x c1=weather c2=weather"}},
		{"a call after a user message is a new message", bodies{says("x"), user("a"), call("c1", "")},
			[]string{"assistant: x", "user: a", "assistant:  c1=weather"}},
		{"a note is no message", bodies{user("a"), event.Note{Kind: event.NoteThinking, Content: "hm"}, says("x")}, []string{"user: a", "assistant: x"}},
		{"a call belongs to the message that it names", bodies{says("x"), says("y"), user("a"), call("c1", "demo:0001")},
			[]string{"assistant: x c1=weather", "assistant: y", "user: a"}},
		{"a call that names an unknown message is a new message", bodies{says("x"), call("c1", "demo:0099")},
			[]string{"assistant: x", "assistant:  c1=weather"}},
		{"a call that names a message of an imported log belongs to the newest", bodies{says("x"), call("c1", "msg_7")},
			[]string{"assistant: x c1=weather"}},
		{"a repeated call is dropped", bodies{says("x"), call("c1", ""), call("c1", "")}, []string{"assistant: x c1=weather"}},
		{"a call with the id of a call with a result is a new call", bodies{says("x"), call("c1", ""), result("c1", `1`), call("c1", ""), result("c1", `2`)},
			[]string{"assistant: x c1=weather", "tool: 1 for c1", "assistant:  c1=weather", "tool: 2 for c1"}},
		{"a result follows its call", bodies{says("x"), call("c1", ""), call("c2", ""), user("a"), result("c2", `"two"`), result("c1", `{"n":1}`)},
			[]string{"assistant: x c1=weather c2=weather", "tool: two for c2", `tool: {"n":1} for c1`, "user: a"}},
		{"a second result replaces the first", bodies{
			says("x"), call("c1", ""), event.ToolResult{ToolCallID: "c1", Error: json.RawMessage(`"unknown"`), IsError: true}, user("a"), result("c1", `1`),
		}, []string{"assistant: x c1=weather", "tool: 1 for c1", "user: a"}},
		{"a result without a call is last", bodies{user("a"), result("c9", `1`)}, []string{"user: a", "tool: 1 for c9"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := reduce(tc.events...)
			require.Equal(t, tc.want, brief(got.Messages))
		})
	}
}

func TestMessagesNameTheirEvents(t *testing.T) {
	got := reduce(event.UserMessage{Content: "a"}, event.SetTimeout{TimeoutMs: 1}, event.UserMessage{Content: "b"})
	require.Equal(t, "demo:0001", got.Messages[0].EventID)
	require.Equal(t, "demo:0003", got.Messages[1].EventID)
}

func TestConfig(t *testing.T) {
	t.Run("a provider replaces the primary as a whole", func(t *testing.T) {
		got := reduce(
			event.SetProviderConfig{ProviderID: "openai", Model: "a", Temperature: new(0.0), MaxTokens: new(5), APIKeyRef: "env:A", TextOnly: true},
			event.SetProviderConfig{ProviderID: "ollama", Model: "b"},
		).Config
		require.Equal(t, reducer.ProviderConfig{ProviderID: "ollama", Model: "b"}, got.Primary)
		require.Nil(t, got.Fallback)
	})
	t.Run("the default provider and no fallback return", func(t *testing.T) {
		got := reduce(
			event.SetProviderConfig{ProviderID: "openai", Model: "a"}, event.SetProviderConfig{ProviderID: "ollama", Model: "b", AsFallback: true},
			event.SetProviderConfig{UseDefault: true},
		).Config
		require.Equal(t, reducer.Initial().Config.Primary, got.Primary)
		require.Equal(t, "b", got.Fallback.Model)
		got = reduce(
			event.SetProviderConfig{ProviderID: "openai", Model: "a"}, event.SetProviderConfig{ProviderID: "ollama", Model: "b", AsFallback: true},
			event.SetProviderConfig{UseDefault: true, AsFallback: true},
		).Config
		require.Equal(t, "a", got.Primary.Model)
		require.Nil(t, got.Fallback)
	})
	t.Run("a fallback does not change the primary", func(t *testing.T) {
		got := reduce(event.SetProviderConfig{ProviderID: "ollama", Model: "b", AsFallback: true}).Config
		require.Equal(t, reducer.Initial().Config.Primary, got.Primary)
		require.Equal(t, &reducer.ProviderConfig{ProviderID: "ollama", Model: "b"}, got.Fallback)
	})
	t.Run("unset retry fields have their defaults", func(t *testing.T) {
		got := reduce(
			event.SetRetryConfig{MaxRetries: 1, InitialDelayMs: 5, BackoffFactor: new(3.0), MaxDelayMs: new(int64(7)), Jitter: true},
			event.SetRetryConfig{MaxRetries: 0, InitialDelayMs: 90_000},
		).Config.Retry
		require.Equal(t, reducer.RetryConfig{InitialDelayMs: 90_000, BackoffFactor: 2, MaxDelayMs: 90_000}, got)
	})
	t.Run("a timeout", func(t *testing.T) {
		require.Equal(t, int64(5), reduce(event.SetTimeout{TimeoutMs: 5}).Config.TimeoutMs)
	})
	t.Run("all timeouts are replaced at once", func(t *testing.T) {
		set := event.SetTimeout{TimeoutMs: 5, FirstTokenMs: new(int64(3)), StallMs: new(int64(2))}
		got := reduce(set).Config
		require.Equal(t, []int64{5, 3, 2}, []int64{got.TimeoutMs, got.FirstTokenMs, got.StallMs})
		got = reduce(set, event.SetTimeout{TimeoutMs: 7}).Config
		require.Equal(t, []int64{7, 0, 0}, []int64{got.TimeoutMs, got.FirstTokenMs, got.StallMs})
	})
	t.Run("unset fields of a delivery policy keep their values", func(t *testing.T) {
		got := reduce(
			event.SetDeliveryPolicy{QuietPeriodMs: new(int64(0))},
			event.SetDeliveryPolicy{Policy: event.PolicyQueue},
			event.SetDeliveryPolicy{MaxWaitMs: new(int64(7))},
		).Config.Delivery
		require.Equal(t, reducer.Delivery{Policy: event.PolicyQueue, QuietPeriodMs: 0, MaxWaitMs: 7}, got)
	})
	t.Run("all request settings are replaced at once", func(t *testing.T) {
		got := reduce(
			event.SetRequestSettings{TopP: new(0.5), Stop: []string{"END"}}, event.SetRequestSettings{Seed: new(int64(7))},
		)
		require.Equal(t, event.RequestSettings{Seed: new(int64(7))}, got.Config.Request)
		require.Equal(t, reducer.Initial(), reducer.Reduce(got, event.New(event.SetRequestSettings{})))
	})
	t.Run("the default wait does not shorten a long quiet period", func(t *testing.T) {
		got := reduce(event.SetDeliveryPolicy{QuietPeriodMs: new(int64(2000))}).Config.Delivery
		require.Equal(t, int64(2000), got.MaxWaitMs)
	})
}

func TestValidate(t *testing.T) {
	good := reduce(event.SystemPrompt{Content: "s"}, event.UserMessage{Content: "a"})
	for _, tc := range []struct {
		name, want string
		spoil      func(*reducer.ReducedContext)
	}{
		{"an empty model", "model", func(r *reducer.ReducedContext) { r.Config.Primary.Model = "" }},
		{"an empty fallback", "providerId", func(r *reducer.ReducedContext) { r.Config.Fallback = &reducer.ProviderConfig{} }},
		{"a zero timeout", "timeoutMs", func(r *reducer.ReducedContext) { r.Config.TimeoutMs = 0 }},
		{"a stall timeout above the timeout", "stallMs", func(r *reducer.ReducedContext) { r.Config.StallMs = r.Config.TimeoutMs + 1 }},
		{"a negative first-token timeout", "firstTokenMs", func(r *reducer.ReducedContext) { r.Config.FirstTokenMs = -1 }},
		{"negative retries", "maxRetries", func(r *reducer.ReducedContext) { r.Config.Retry.MaxRetries = -1 }},
		{"a topP above one", "topP", func(r *reducer.ReducedContext) { r.Config.Request.TopP = new(2.0) }},
		{"an unknown policy", "policy", func(r *reducer.ReducedContext) { r.Config.Delivery = reducer.Delivery{Policy: "shout"} }},
		{"an unknown role", "unknown role", func(r *reducer.ReducedContext) { r.Messages[1].Role = "robot" }},
		{"a system message in the middle", "must be the first", func(r *reducer.ReducedContext) { r.Messages[1].Role = reducer.RoleSystem }},
		{"a result without a call", "c9", func(r *reducer.ReducedContext) {
			r.Messages[1] = reducer.Message{Role: reducer.RoleTool, ToolCallID: "c9"}
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			require.NoError(t, reducer.Validate(good))
			bad := good
			bad.Messages = slices.Clone(good.Messages)
			tc.spoil(&bad)
			require.ErrorContains(t, reducer.Validate(bad), tc.want)
		})
	}
}

func TestEveryReductionOfALogIsValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		require.NoError(t, reducer.Validate(reducer.Reduce(reducer.Initial(), eventtest.Log("demo").Draw(t, "log")...)))
	})
}

func TestEverySplitOfALogReducesTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := eventtest.Log("demo").Draw(t, "log")
		want := reducer.Reduce(reducer.Initial(), log...)
		got := reducer.Initial()
		for rest := log; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "piece")
			got, rest = reducer.Reduce(got, rest[:n]...), rest[n:]
		}
		require.Equal(t, want, got)
	})
}

func TestAStateSurvivesAJSONRoundTripAtAnyCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := eventtest.Log("demo").Draw(t, "log")
		cut := rapid.IntRange(0, len(log)).Draw(t, "cut")
		before := reducer.Reduce(reducer.Initial(), log[:cut]...)
		require.Equal(t, before, throughJSON(t, before))
		require.Equal(t, reducer.Reduce(reducer.Initial(), log...), reducer.Reduce(throughJSON(t, before), log[cut:]...))
	})
}

func TestALogReducesTheSameAfterAJSONRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := eventtest.Log("demo").Draw(t, "log")
		require.Equal(t, reducer.Reduce(reducer.Initial(), log...), reducer.Reduce(reducer.Initial(), throughJSON(t, log)...))
	})
}

func throughJSON[T any](t require.TestingT, value T) T {
	data, err := json.Marshal(value)
	require.NoError(t, err)
	var out T
	require.NoError(t, json.Unmarshal(data, &out))
	return out
}

// Successive states share arrays; folding one must not modify the others.
func TestReduceModifiesNoState(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := eventtest.Log("demo").Draw(t, "log")
		states := []reducer.ReducedContext{reducer.Initial()}
		copies := []reducer.ReducedContext{reducer.Initial()}
		keep := func(r reducer.ReducedContext) {
			states, copies = append(states, r), append(copies, throughJSON(t, r))
		}
		for _, e := range log {
			keep(reducer.Reduce(states[len(states)-1], e))
		}
		for range rapid.IntRange(1, 20).Draw(t, "branches") {
			from := rapid.IntRange(0, len(states)-1).Draw(t, "from")
			other := eventtest.Log("demo").Draw(t, "other")
			keep(reducer.Reduce(states[from], other...))
			require.Equal(t, reducer.Reduce(copies[from], other...), states[len(states)-1])
		}
		require.Equal(t, copies, states)
	})
}

func TestAStateCanBeFoldedConcurrently(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := eventtest.Log("demo").Draw(t, "log")
		state := reducer.Initial()
		for _, e := range log {
			state = reducer.Reduce(state, e)
		}
		branches := rapid.SliceOfN(eventtest.Log("demo"), 4, 4).Draw(t, "branches")
		got := make([]reducer.ReducedContext, len(branches))
		var wg sync.WaitGroup
		for i, branch := range branches {
			wg.Go(func() {
				got[i] = state
				for _, e := range branch {
					got[i] = reducer.Reduce(got[i], e)
				}
			})
		}
		wg.Wait()
		for i, branch := range branches {
			require.Equal(t, reducer.Reduce(reducer.Initial(), slices.Concat(log, branch)...), got[i])
		}
	})
}

func TestReduceIgnoresOtherLifecycleEvents(t *testing.T) {
	folded := []event.Tag{event.TagCompacted, event.TagContentRefused, event.TagLLMRequestFailed, event.TagLLMRequestFellBack}
	isFolded := func(e event.Event) bool { return e.Tag().IsInput() || slices.Contains(folded, e.Tag()) }
	rapid.Check(t, func(t *rapid.T) {
		log := eventtest.Log("demo").Draw(t, "log")
		var said []event.Event
		for _, e := range log {
			if isFolded(e) {
				said = append(said, e)
			}
		}
		require.Equal(t, reducer.Reduce(reducer.Initial(), said...), reducer.Reduce(reducer.Initial(), log...))

		e := eventtest.Event().Filter(func(e event.Event) bool { return !isFolded(e) }).Draw(t, "event")
		state := reducer.Reduce(reducer.Initial(), log...)
		require.Equal(t, state, reducer.Reduce(state, e))
	})
}

// The expected place is computed naively: after the last message of the request and the
// results of its tool calls.
func TestAnAnswerFollowsTheMessagesOfItsRequest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := eventtest.Log("demo").Draw(t, "log")
		before := reducer.Reduce(reducer.Initial(), log...)
		through := rapid.IntRange(1, len(log)).Draw(t, "through")
		answer := event.New(event.AssistantMessage{Content: "the answer", ThroughEventID: event.FormatID("demo", through)})
		answer.ID = event.FormatID("demo", len(log)+1)

		seen := func(m reducer.Message) bool {
			return m.Role == reducer.RoleSystem || m.Summary || event.Counter(m.EventID) <= through
		}
		place := 0
		for i := range before.Messages {
			if seen(before.Messages[i]) {
				place = i + 1
			}
		}
		for place < len(before.Messages) && before.Messages[place].Role == reducer.RoleTool {
			place++
		}
		want := slices.Insert(brief(before.Messages), place, "assistant: the answer")
		require.Equal(t, want, brief(reducer.Reduce(before, answer).Messages))
	})
}
