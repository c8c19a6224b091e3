package openai

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
	"github.com/seed-9ed7edd4/chronicle/gateway/thread"
)

const requestID = "demo:r0001"

// story is what happens in the context demo, with one delta for each piece of a text.
type story []any

// pieces are the deltas of the newest attempt.
type pieces struct {
	isReasoning bool
	texts       []string
}

func said(texts ...string) pieces { return pieces{texts: texts} }

func thought(texts ...string) pieces { return pieces{true, texts} }

// items returns the story. Deltas whole: each attempt has one delta of each kind, as a reader who comes late sees them;
// none: the reader comes after the end.
func (s story) items(deltas string) (items []gateway.Item) {
	counter, attempt := 0, 0
	for _, step := range s {
		if p, ok := step.(pieces); ok {
			texts := p.texts
			switch deltas {
			case "none":
				continue
			case "whole":
				texts = []string{strings.Join(texts, "")}
			}
			offset := 0
			for _, text := range texts {
				d := event.TextDelta{RequestID: requestID, Attempt: attempt, Delta: text, Reset: offset == 0}
				item := gateway.Item{Event: event.New(d), Offset: offset}
				if p.isReasoning {
					item.Event = event.New(event.ReasoningDelta(d))
				}
				items, offset = append(items, item), offset+len(text)
			}
			continue
		}
		e := event.New(step.(event.Body))
		counter++
		e.ID, e.ContextName, e.Timestamp = event.FormatID("demo", counter), "demo", time.Unix(1_767_000_000, 0)
		if _, ok := e.Body.(event.LLMRequestStarted); ok {
			attempt++
		}
		items = append(items, gateway.Item{Event: e})
	}
	return items
}

func started(through int) event.LLMRequestStarted {
	return event.LLMRequestStarted{RequestID: requestID, ProviderID: "offline", Model: "echo", ThroughEventID: event.FormatID("demo", through)}
}

type emitted struct {
	kind   string
	number int64
	fields map[string]any
}

// read folds items into the frames after a number.
func readStory(t *testing.T, items []gateway.Item, trigger int, after int64, clients ...string) (frames []emitted, r response) {
	t.Helper()
	of := newTurn("demo", trigger, record{Functions: clients})
	of.after = after
	of.offers = func(calls []string) []string { return calls }
	return readTurn(t, of, items)
}

func readTurn(t *testing.T, of *turn, items []gateway.Item) (frames []emitted, r response) {
	t.Helper()
	last := of.after
	of.emit = func(kind string, fields map[string]any) {
		data, err := json.Marshal(fields)
		require.NoError(t, err)
		var kept map[string]any
		require.NoError(t, json.Unmarshal(data, &kept))
		n := fields["sequence_number"].(int64)
		require.Greater(t, n, last, "%s", kind)
		require.Less(t, n, int64(1)<<53)
		last = n
		frames = append(frames, emitted{kind, n, kept})
	}
	for _, item := range items {
		if of.add(item); of.isDone {
			break
		}
	}
	return frames, of.response
}

// texts joins the deltas of each item, and counts the other events.
func texts(frames []emitted) (joined map[string]string, others map[string]int) {
	joined, others = map[string]string{}, map[string]int{}
	for _, f := range frames {
		id := fmt.Sprint(f.fields["item_id"])
		if strings.HasSuffix(f.kind, ".delta") && f.fields["delta"] != nil && strings.Contains(f.kind, "text") {
			joined[id] += f.fields["delta"].(string)
			continue
		}
		others[fmt.Sprintf("%s %d", f.kind, f.number)]++
	}
	return joined, others
}

var usage = event.Usage{InputTokens: 9, OutputTokens: 5, ReasoningTokens: 2}

var stories = map[string]struct {
	story
	clients []string
	status  string
	kinds   string // of the output
}{
	"an answer": {story{
		event.UserMessage{Content: "Hi"}, started(1), said("one ", "two ", "thrée"),
		event.AssistantMessage{RequestID: requestID, Content: "one two thrée"}, event.LLMRequestCompleted{RequestID: requestID, FinishReason: "stop", Usage: usage},
	}, nil, statusCompleted, "message"},
	"reasoning": {story{
		event.UserMessage{Content: "Hi"}, started(1), thought("h", "m"), said("a", "b"),
		event.AssistantMessage{RequestID: requestID, Content: "ab", Reasoning: "hm"}, event.LLMRequestCompleted{RequestID: requestID, FinishReason: "stop", Usage: usage},
	}, nil, statusCompleted, "reasoning message"},
	"an attempt that fails after it streamed": {story{
		event.UserMessage{Content: "Hi"}, started(1), thought("old "), said("lost ", "text"),
		event.LLMAttemptEnded{RequestID: requestID, Attempt: 1, Outcome: event.AttemptLost, Usage: usage}, started(1), said("new ", "text"),
		event.AssistantMessage{RequestID: requestID, Content: "new text"}, event.LLMRequestCompleted{RequestID: requestID, FinishReason: "stop"},
	}, nil, statusCompleted, "message"},
	"an answer that is too long": {story{
		event.UserMessage{Content: "Hi"}, started(1), said("a"), event.AssistantMessage{RequestID: requestID, Content: "a"},
		event.LLMRequestCompleted{RequestID: requestID, FinishReason: "length"},
	}, nil, statusIncomplete, "message"},
	"a cancelled answer": {story{
		event.UserMessage{Content: "Hi"}, started(1), said("a", "b"), event.AssistantMessage{RequestID: requestID, Content: "ab", Partial: true},
		event.LLMRequestInterrupted{RequestID: requestID, Reason: event.ReasonCancelled},
	}, nil, statusCancelled, "message"},
	"a failure": {story{
		event.UserMessage{Content: "Hi"}, started(1), event.LLMRequestFailed{RequestID: requestID, Error: "status 429", Kind: event.FailureRateLimited},
	}, nil, statusFailed, ""},
	"a function": {story{
		event.UserMessage{Content: "Hi"}, started(1), said("let me see"), event.AssistantMessage{RequestID: requestID, Content: "let me see"},
		event.ToolCall{RequestID: requestID, ToolCallID: "c1", ToolName: "ask", Parameters: []byte(`{"a":1}`)},
		event.LLMAttemptEnded{RequestID: requestID, Attempt: 1, Outcome: event.AttemptToolCalls, Usage: usage},
	}, []string{"ask"}, statusCompleted, "message function_call"},
	"a tool of the worker": {story{
		event.UserMessage{Content: "Hi"}, started(1), event.AssistantMessage{RequestID: requestID},
		event.ToolCall{RequestID: requestID, ToolCallID: "c1", ToolName: "mcp:files/read"},
		event.ToolCall{RequestID: requestID, ToolCallID: "c2", ToolName: "fetch"},
		event.LLMAttemptEnded{RequestID: requestID, Attempt: 1, Outcome: event.AttemptToolCalls, Usage: usage},
		event.ToolResult{ToolCallID: "c2", Value: []byte(`"two"`)}, event.ToolResult{ToolCallID: "c1", Error: []byte(`"no"`), IsError: true},
		started(8), said("done"), event.AssistantMessage{RequestID: requestID, Content: "done"}, event.LLMRequestCompleted{RequestID: requestID, FinishReason: "stop"},
	}, []string{"ask"}, statusCompleted, "mcp_call mcp_call message"},
	"an approval": {story{
		event.UserMessage{Content: "Hi"}, started(1), event.AssistantMessage{RequestID: requestID},
		event.ToolCall{RequestID: requestID, ToolCallID: "c1", ToolName: "fetch"},
		event.LLMAttemptEnded{RequestID: requestID, Attempt: 1, Outcome: event.AttemptToolCalls, Usage: usage},
		event.ApprovalRequested{RequestID: requestID, ToolCallID: "c1"},
	}, nil, statusCompleted, "mcp_call mcp_approval_request"},
	"a session that ends": {story{event.UserMessage{Content: "Hi"}, event.SessionEnded{Reason: "closed"}}, nil, statusCancelled, ""},
}

func TestAnyReaderOfAResponseSeesTheSame(t *testing.T) {
	for name, s := range stories {
		t.Run(name, func(t *testing.T) {
			whole, r := readStory(t, s.items(""), 1, -1, s.clients...)
			require.Equal(t, s.status, r.Status)
			var kinds []string
			for _, i := range r.Output {
				kinds = append(kinds, i.Type)
			}
			require.Equal(t, s.kinds, strings.Join(kinds, " "))
			require.Equal(t, "response.created", whole[0].kind)
			joined, _ := texts(whole)
			for cut := -1; cut < len(whole); cut++ {
				after, seen := int64(-1), []emitted(nil)
				if cut >= 0 {
					after, seen = whole[cut].number, whole[:cut+1]
				}
				for _, deltas := range []string{"", "whole", "none"} {
					rest, again := readStory(t, s.items(deltas), 1, after, s.clients...)
					require.Equal(t, r, again)
					all := append(append([]emitted(nil), seen...), rest...)
					got, events := texts(all)
					_, want := texts(whole)
					if deltas == "none" { // the log has no text of attempts that failed
						maps.DeleteFunc(got, func(id, _ string) bool { return joined[id] != got[id] && strings.Contains(name, "fails") })
						for id, text := range got {
							require.Equal(t, joined[id], text)
						}
					} else {
						require.Equal(t, joined, got, "cut at %d, deltas %q", cut, deltas)
					}
					require.Equal(t, want, events, "cut at %d, deltas %q", cut, deltas)
				}
			}
		})
	}
}

// TestTheStreamIsWellFormed checks what accumulators of clients require.
func TestTheStreamIsWellFormed(t *testing.T) {
	for name, s := range stories {
		t.Run(name, func(t *testing.T) {
			frames, _ := readStory(t, s.items(""), 1, -1, s.clients...)
			open, isDone := map[string]bool{}, map[string]bool{}
			items := 0.0
			for _, f := range frames {
				item, _ := f.fields["item"].(map[string]any)
				switch f.kind {
				case "response.output_item.added":
					require.InDelta(t, items, f.fields["output_index"], 0, "indexes have no gaps")
					items++
					require.False(t, open[item["id"].(string)] || isDone[item["id"].(string)], "%v is added once", item["id"])
					open[item["id"].(string)] = true
				case "response.output_item.done":
					require.True(t, open[item["id"].(string)], "%v", item)
					delete(open, item["id"].(string))
					isDone[item["id"].(string)] = true
				default:
					if id, ok := f.fields["item_id"]; ok {
						require.True(t, open[id.(string)], "%s of %v", f.kind, id)
					}
				}
			}
			last := frames[len(frames)-1]
			require.Contains(t, []string{"response.completed", "response.incomplete", "response.failed"}, last.kind)
			if !strings.Contains(name, "approval") {
				require.Empty(t, open)
			}
		})
	}
}

func TestAResultContinuesTheTurn(t *testing.T) {
	s := story{
		event.UserMessage{Content: "Hi"}, started(1), event.AssistantMessage{RequestID: requestID},
		event.ToolCall{RequestID: requestID, ToolCallID: "c1", ToolName: "ask"}, event.ToolCall{RequestID: requestID, ToolCallID: "c2", ToolName: "fetch"},
		event.LLMAttemptEnded{RequestID: requestID, Attempt: 1, Outcome: event.AttemptToolCalls},
		event.ApprovalRequested{RequestID: requestID, ToolCallID: "c2"},
		event.ToolResult{ToolCallID: "c1", Value: []byte(`"yes"`)}, event.ApprovalDecided{ToolCallID: "c2", Decision: event.Approve},
		event.ToolResult{ToolCallID: "c2", Value: []byte(`"page"`)}, started(10), said("so"),
		event.AssistantMessage{RequestID: requestID, Content: "so"}, event.LLMRequestCompleted{RequestID: requestID, FinishReason: "stop"},
	}
	_, first := readStory(t, s.items(""), 1, -1, "ask")
	require.Equal(t, statusCompleted, first.Status)
	require.Len(t, first.Output, 3)
	_, partial := readStory(t, s.items("")[:8], 8, -1, "ask")
	require.Equal(t, statusCompleted, partial.Status, "the approval is still missing")
	_, second := readStory(t, s.items(""), 9, -1, "ask")
	require.Equal(t, statusCompleted, second.Status)
	require.Equal(t, []string{"mcp_call", "message"}, []string{second.Output[0].Type, second.Output[1].Type})
	require.Equal(t, "page", *second.Output[0].Output)
}

// The log has the approval, and the error of invalid arguments, after the end of the attempt.
func TestAResponseOffersOnlyCallsThatWaitForItsClient(t *testing.T) {
	asks := story{
		event.UserMessage{Content: "Hi"}, started(1), event.AssistantMessage{RequestID: requestID},
		event.ToolCall{RequestID: requestID, ToolCallID: "c1", ToolName: "ask"},
		event.LLMAttemptEnded{RequestID: requestID, Attempt: 1, Outcome: event.AttemptToolCalls},
	}
	for name, test := range map[string]struct {
		next  story
		isOwn bool // the result is that of the client
		kinds string
	}{
		"an approval": {story{event.ApprovalRequested{RequestID: requestID, ToolCallID: "c1"}}, false, "function_call mcp_approval_request"},
		"invalid arguments": {story{
			event.ToolResult{ToolCallID: "c1", Error: []byte(`"invalid"`), IsError: true}, started(6),
			event.AssistantMessage{RequestID: requestID, Content: "Sorry"}, event.LLMRequestCompleted{RequestID: requestID, FinishReason: "stop"},
		}, false, "function_call message"},
		"a result": {story{event.ToolResult{ToolCallID: "c1", Value: []byte(`"yes"`)}, started(6)}, true, "function_call"},
	} {
		t.Run(name, func(t *testing.T) {
			items := slices.Concat(asks, test.next).items("none")
			if test.isOwn {
				items[5].Event.ClientEventID = "r1"
			}
			read := func(offers func([]string) []string) ([]emitted, response) {
				of := newTurn("demo", 1, record{Functions: []string{"ask"}})
				of.offers = offers
				return readTurn(t, of, items)
			}
			fromLog, r := read(nil)
			var kinds []string
			for _, i := range r.Output {
				kinds = append(kinds, i.Type)
			}
			require.Equal(t, statusCompleted, r.Status)
			require.Equal(t, test.kinds, strings.Join(kinds, " "))
			live, again := read(func(calls []string) []string {
				if test.isOwn {
					return calls
				}
				return nil
			})
			require.Equal(t, fromLog, live)
			require.Equal(t, r, again)
		})
	}
}

func TestAConversationHasTheItemsOfItsResponses(t *testing.T) {
	for name, s := range stories {
		of, all := thread.Thread{Clients: s.clients}, []item(nil)
		for _, in := range s.items("none") {
			for _, change := range of.Apply(in) {
				all = itemsOf(all, "demo", change)
			}
		}
		_, r := readStory(t, s.items("none"), 1, -1, s.clients...)
		all = slices.DeleteFunc(all, func(i item) bool { return i.Role == "user" })
		require.Equal(t, r.Output, append([]item{}, all...), name)
	}
}

// A model reads it there, too.
func TestAnInterruptedAnswerPrecedesTheMessageThatInterruptedIt(t *testing.T) {
	var of thread.Thread
	var all []item
	for _, in := range (story{
		event.UserMessage{Content: "one"}, started(1), event.UserMessage{Content: "two"}, event.UserMessage{Content: "three"},
		event.AssistantMessage{RequestID: requestID, Reasoning: "Hm", Content: "1", Partial: true},
	}).items("none") {
		for _, change := range of.Apply(in) {
			all = itemsOf(all, "demo", change)
		}
	}
	var ids []string
	for _, i := range all {
		ids = append(ids, i.ID)
	}
	require.Equal(t, []string{"msg_demo_0001", "rs_demo_0002", "msg_demo_0002", "msg_demo_0003", "msg_demo_0004"}, ids)
}

// Its numbers would repeat otherwise.
func TestATextThatStartsOverComesWithItsRecord(t *testing.T) {
	s := story{
		event.UserMessage{Content: "Hi"}, started(1), said("old "), said("new ", "text"),
		event.AssistantMessage{RequestID: requestID, Content: "new text"}, event.LLMRequestCompleted{RequestID: requestID, FinishReason: "stop"},
	}
	frames, r := readStory(t, s.items(""), 1, -1)
	joined, _ := texts(frames)
	require.Equal(t, map[string]string{"msg_demo_0002": "old "}, joined)
	require.Equal(t, "new text", *(*r.Output[0].Content)[0].Text)
	done := frames[len(frames)-4]
	require.Equal(t, []any{"response.output_text.done", "new text"}, []any{done.kind, done.fields["text"]})
}

func TestAQueuedMessageHasItsOwnResponse(t *testing.T) {
	other := event.LLMRequestStarted{RequestID: "demo:r0002", ThroughEventID: event.FormatID("demo", 3)}
	s := story{
		event.UserMessage{Content: "one"}, started(1), event.UserMessage{Content: "two"}, said("1"),
		event.AssistantMessage{RequestID: requestID, Content: "1"}, event.LLMRequestCompleted{RequestID: requestID, FinishReason: "stop"},
		other, event.AssistantMessage{RequestID: "demo:r0002", Content: "2"}, event.LLMRequestCompleted{RequestID: "demo:r0002", FinishReason: "stop"},
	}
	frames, r := readStory(t, s.items(""), 3, -1)
	require.Equal(t, "2", *(*r.Output[0].Content)[0].Text)
	require.Equal(t, statusQueued, frames[0].fields["response"].(map[string]any)["status"])
}

// The time is linear in the number of messages: else this test takes hours.
func TestTheTextsOfATurnAreOne(t *testing.T) {
	events := []event.Event{event.New(event.UserMessage{Content: "Hi"})}
	for range 1_000_000 {
		events = append(events, event.New(event.AssistantMessage{Content: "x"}))
	}
	events = append(events, event.New(event.UserMessage{Content: "And?"}), event.New(event.AssistantMessage{Content: "Bye"}))
	lines := normalize(events, nil)
	require.Len(t, lines, 4)
	require.Len(t, lines[1], len("assistant: ")+3*1_000_000-len(separator))
	require.Equal(t, []string{"user: And?", "assistant: Bye"}, lines[2:])
}

func TestIDsNameTheirContext(t *testing.T) {
	for _, name := range []string{"demo", "a_b.c-d", "x_0001"} {
		got, counter, ok := parseID(responsePrefix, formatID(responsePrefix, name, 12345))
		require.True(t, ok)
		require.Equal(t, name, got)
		require.Equal(t, 12345, counter)
	}
	for _, id := range []string{"", "resp_", "resp_demo", "resp_demo_", "resp_demo_12", "resp_demo_00012", "msg_demo_0001", "resp_../x_0001", "resp__0001"} {
		_, _, ok := parseID(responsePrefix, id)
		require.False(t, ok, id)
	}
}

// BenchmarkDelta is what a piece of a long answer costs besides the gateway's own stream.
func BenchmarkDelta(b *testing.B) {
	t := newTurn("demo", 1, record{})
	size := 0
	t.emit = func(_ string, fields map[string]any) {
		data, _ := json.Marshal(fields)
		size += len(gateway.Frame("", "", data))
	}
	for _, item := range (story{event.UserMessage{Content: "Hi"}, started(1)}).items("") {
		t.add(item)
	}
	for offset := 0; b.Loop(); offset += 5 {
		t.add(gateway.Item{Event: event.New(event.TextDelta{RequestID: requestID, Attempt: 1, Delta: "word "}), Offset: offset})
	}
}
