package llm_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

func usageChunk(usage string) string {
	return `data: {"choices":[],"usage":` + usage + "}\n\n"
}

func withoutQuirks(u event.Usage) event.Usage {
	u.Quirks = nil
	return u
}

func TestReportedUsage(t *testing.T) {
	for name, test := range map[string]struct {
		usage string
		want  event.Usage
	}{
		"tokens": {`{"prompt_tokens":7,"completion_tokens":2,"total_tokens":9}`, event.Usage{InputTokens: 7, OutputTokens: 2}},
		"cached tokens and reasoning": {
			`{"prompt_tokens":7,"completion_tokens":5,"total_tokens":12,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":3}}`,
			event.Usage{InputTokens: 7, CachedTokens: 4, OutputTokens: 5, ReasoningTokens: 3},
		},
		"reasoning besides the completion": {
			`{"prompt_tokens":7,"completion_tokens":5,"total_tokens":15,"completion_tokens_details":{"reasoning_tokens":3}}`,
			event.Usage{InputTokens: 7, OutputTokens: 8, ReasoningTokens: 3},
		},
		"more cached tokens than input": {
			`{"prompt_tokens":7,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":40}}`,
			event.Usage{InputTokens: 7, CachedTokens: 7, OutputTokens: 5},
		},
		"the last of several": {
			`{"prompt_tokens":7,"completion_tokens":1}}` + "\n\n" + `data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2}`,
			event.Usage{InputTokens: 7, OutputTokens: 2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			step := llmtest.Raw("text/event-stream", llmtest.Chunk(`{"content":"Hi"}`, ""), llmtest.Chunk(`{}`, "stop"), usageChunk(test.usage))
			result, err := target(t, llmtest.Start(t, step)).Stream(within(t), hello, nil)
			require.NoError(t, err)
			require.Equal(t, test.want, withoutQuirks(result.Usage))
		})
	}
}

// The estimate of hello: "Hello" is one token, and there is an overhead per message and request.
var estimated = event.Usage{InputTokens: 8, Estimated: true}

func TestUsageIsEstimatedIfTheProviderReportsNone(t *testing.T) {
	const sse = "text/event-stream"
	hi := llmtest.Chunk(`{"content":"Hi there!"}`, "")
	withOutput := func(tokens, reasoning int) event.Usage {
		u := estimated
		u.OutputTokens, u.ReasoningTokens = tokens, reasoning
		return u
	}
	for name, test := range map[string]struct {
		step llmtest.Step
		want event.Usage
	}{
		"a complete answer":                  {llmtest.Answer("Hi", " there", "!").NoUsage(), withOutput(3, 0)},
		"a usage of zeros":                   {llmtest.Answer("Hi there!").Usage(0, 0), withOutput(3, 0)},
		"a truncated answer":                 {llmtest.Raw(sse, hi), withOutput(3, 0)},
		"reasoning":                          {llmtest.Raw(sse, llmtest.Chunk(`{"reasoning_content":"Hi there!"}`, ""), hi), withOutput(6, 3)},
		"an error after some text":           {llmtest.Raw(sse, hi, `data: {"error":{"message":"busy"}}`+"\n\n"), withOutput(3, 0)},
		"an error instead of an answer":      {llmtest.Raw(sse, `data: {"error":{"message":"busy"}}`+"\n\n"), event.Usage{}},
		"an error response":                  {llmtest.Error(503, "overloaded", "busy"), event.Usage{}},
		"a connection closed without answer": {llmtest.Drop(), event.Usage{}},
	} {
		t.Run(name, func(t *testing.T) {
			result, _ := target(t, llmtest.Start(t, test.step)).Stream(within(t), hello, nil)
			require.Equal(t, test.want, withoutQuirks(result.Usage))
		})
	}
}

func TestAStoppedRequestUsedItsInput(t *testing.T) {
	for name, step := range map[string]llmtest.Step{
		"during the answer":        llmtest.Answer("Hi", " there").HoldAfter(1, llmtest.NewGate()),
		"before the first token":   llmtest.Stall(),
		"before any response line": llmtest.Answer("Hi").HoldAfter(0, llmtest.NewGate()),
	} {
		t.Run(name, func(t *testing.T) {
			model := llmtest.Start(t, step)
			ctx, cancel := context.WithCancel(within(t))
			target := target(t, model)
			go func() {
				_, _ = model.Request(ctx, 1)
				if name != "during the answer" {
					cancel()
				}
			}()
			result, err := target.Stream(ctx, hello, func(llm.Delta) { cancel() })
			require.Error(t, err)
			require.Equal(t, withoutQuirks(result.Usage), target.Usage())
			require.True(t, result.Estimated)
			require.Equal(t, estimated.InputTokens, result.InputTokens)
			require.Equal(t, len(result.Text)/2, result.OutputTokens)
		})
	}
}

func TestTheUsageOfARunningRequestIsEstimatedBySize(t *testing.T) {
	text := strings.Repeat("The size of a text says roughly how many tokens it has. ", 100)
	for name, test := range map[string]struct {
		sent, answer string
		reasons      bool
		tools        []llm.Tool
		attachment   *reducer.Attachment
	}{
		"text":      {sent: text, answer: text},
		"reasoning": {sent: text, answer: text, reasons: true},
		"tools":     {sent: "Hello", answer: text, tools: tools},
		"an image": {sent: text, answer: text, attachment: &reducer.Attachment{MediaType: "image/png", Source: event.Source{
			Type: event.SourceBlob, Data: []byte(strings.Repeat("image", 100_000)),
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			field := "content"
			if test.reasons {
				field = "reasoning_content"
			}
			chunk := llmtest.Chunk(fmt.Sprintf(`{%q:%q}`, field, test.answer), "")
			target := target(t, llmtest.Start(t, llmtest.Raw("text/event-stream", chunk, llmtest.Chunk(`{"content":"."}`, "stop"), llmtest.Done)))
			target.Tools = test.tools
			sent := user(test.sent)
			if test.attachment != nil {
				sent.Attachments = []reducer.Attachment{*test.attachment}
			}
			var during event.Usage
			result, err := target.Stream(within(t), []reducer.Message{sent}, func(llm.Delta) {
				if !during.Estimated {
					during = target.Usage()
				}
			})
			require.NoError(t, err)
			require.True(t, during.Estimated)
			for _, tokens := range [][2]int{
				{during.InputTokens, result.InputTokens}, {during.OutputTokens, result.OutputTokens}, {during.ReasoningTokens, result.ReasoningTokens},
			} {
				require.InEpsilon(t, tokens[1]+10, tokens[0]+10, 0.3, "%+v during the answer, %+v after it", during, withoutQuirks(result.Usage))
			}
			require.Equal(t, withoutQuirks(result.Usage), target.Usage())
		})
	}
}

// The next request waits for the usage of an interrupted one, so the tokenizer must not read a whole conversation.
func TestTheInputOfALongConversationIsExtrapolated(t *testing.T) {
	var messages []reducer.Message
	say := func(n int) {
		image := user(fmt.Sprintf("Frage %d: Wie groß ist der Anteil auf diesem Bild?", n))
		image.Attachments = []reducer.Attachment{{MediaType: "image/png", Source: event.Source{Type: event.SourceBlob, Data: []byte(strings.Repeat("image", 1000))}}}
		messages = append(messages, image, assistant("Die Hälfte."))
	}
	for i := range 2000 {
		if i%100 == 0 {
			say(i)
		}
		messages = append(messages, user(fmt.Sprintf("Frage %d: Wie groß ist der Anteil?", i)), assistant(strings.Repeat("Das kann ich nicht sagen. ", 5)))
	}
	messages = append(messages, hello...)
	target := target(t, llmtest.Start(t, llmtest.Answer("Hi").NoUsage(), llmtest.Answer("Hi").NoUsage()))
	extrapolated, err := target.Stream(within(t), messages, nil)
	require.NoError(t, err)
	counted, err := target.InputTokens(within(t), messages, 0)
	require.NoError(t, err)
	require.InEpsilon(t, counted, extrapolated.InputTokens, 0.02)
	require.NotEqual(t, counted, extrapolated.InputTokens)

	var during event.Usage
	exact, err := target.Stream(within(t), messages, func(llm.Delta) { during = target.Usage() })
	require.NoError(t, err)
	require.Equal(t, counted, exact.InputTokens, "messages that were counted before")
	require.InEpsilon(t, counted, during.InputTokens, 0.02)
}

// Otherwise, an estimate could exceed the reservation for the request.
func TestAnEstimateOfTheOutputIsAtMostItsLimit(t *testing.T) {
	for name, step := range map[string]llmtest.Step{
		"an answer": llmtest.Raw("text/event-stream", llmtest.Chunk(`{"content":"Hi there!"}`, "")),
		"reasoning": llmtest.Raw("text/event-stream", llmtest.Chunk(`{"reasoning_content":"Hi there!"}`, "")),
	} {
		t.Run(name, func(t *testing.T) {
			limited := target(t, llmtest.Start(t, step))
			limited.Settings.MaxTokens = new(2)
			result, err := limited.Stream(within(t), hello, nil)
			require.Error(t, err)
			require.True(t, result.Estimated)
			require.Equal(t, 2, result.OutputTokens)
			require.LessOrEqual(t, result.ReasoningTokens, 2)
		})
	}
}

func TestAnEstimateIncludesToolsAndImages(t *testing.T) {
	estimate := func(messages ...reducer.Message) int {
		model := llmtest.Start(t, llmtest.Answer("Hi").NoUsage())
		result, err := target(t, model).Stream(within(t), append(messages, hello...), nil)
		require.NoError(t, err)
		return result.InputTokens - estimated.InputTokens
	}
	require.Zero(t, estimate())
	call := reducer.Message{Role: reducer.RoleAssistant, ToolCalls: []reducer.ToolCall{{ID: "c1", Name: "weather", Arguments: `{"city":"Paris"}`}}}
	require.InDelta(t, 20, estimate(call), 10, "a call and its result")
	image := reducer.Message{Role: reducer.RoleUser, Attachments: []reducer.Attachment{{
		Source: event.Source{Type: event.SourceBlob, Data: []byte(strings.Repeat("image", 100_000))}, MediaType: "image/png",
	}}}
	require.Equal(t, 769, estimate(image), "an image and its message")
	long := reducer.Message{Role: reducer.RoleUser, Content: strings.Repeat("a b c d ", 125_000)}
	require.InDelta(t, 500_000, estimate(long), 5_000, "a text of which a part is counted")
}

func TestEveryKindOfErrorHasAKindOfFailure(t *testing.T) {
	for _, kind := range kindsIn(t, "error.go") {
		require.Equal(t, kind == llm.KindCanceled, kind.Failure() == "", kind)
	}
}

// kindsIn returns the constants of type Kind in a file.
func kindsIn(t *testing.T, file string) (kinds []llm.Kind) {
	source, err := os.ReadFile(file)
	require.NoError(t, err)
	for _, match := range regexp.MustCompile(`(?m)^\tKind\w+ +Kind = "([^"]+)"`).FindAllSubmatch(source, -1) {
		kinds = append(kinds, llm.Kind(match[1]))
	}
	require.Greater(t, len(kinds), 10)
	return kinds
}
