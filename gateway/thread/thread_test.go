package thread

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest"
	"github.com/seed-9ed7edd4/chronicle/gateway"
)

const requestID = "demo:r0001"

// piece is a delta at an offset.
type piece struct {
	offset int
	event.TextDelta
}

func said(offset int, text string) piece {
	return piece{offset, event.TextDelta{RequestID: requestID, Attempt: 1, Delta: text, Reset: offset == 0}}
}

// fold folds what happens in the context demo.
func fold(t *testing.T, steps ...any) (folded *Thread, changes []Change) {
	t.Helper()
	folded = &Thread{}
	counter := 0
	for _, step := range steps {
		item := gateway.Item{}
		if p, ok := step.(piece); ok {
			item = gateway.Item{Event: event.New(p.TextDelta), Offset: p.offset}
		} else {
			counter++
			item.Event = event.New(step.(event.Body))
			item.Event.ID, item.Event.ContextName = event.FormatID("demo", counter), "demo"
		}
		changes = append(changes, folded.Apply(item)...)
	}
	return folded, changes
}

func started(through int) event.LLMRequestStarted {
	return event.LLMRequestStarted{RequestID: requestID, ThroughEventID: event.FormatID("demo", through), Attempt: 1}
}

// names renders changes, "Grew one".
func names(changes []Change) (names []string) {
	for _, c := range changes {
		name := strings.TrimPrefix(fmt.Sprintf("%T", c), "thread.")
		if g, ok := c.(Grew); ok {
			name += " " + g.Delta
		}
		names = append(names, name)
	}
	return names
}

func TestTextsGrowUntilTheirRecord(t *testing.T) {
	begin := []any{event.UserMessage{Content: "Hi"}, started(1)}
	answer := event.AssistantMessage{RequestID: requestID, Content: "one two"}
	for name, test := range map[string]struct {
		steps []any
		want  []string
	}{
		"each piece once":                {[]any{said(0, "one"), said(3, " two"), answer}, []string{"Grew one", "Grew  two", "Answered"}},
		"pieces that are repeated":       {[]any{said(0, "one"), said(0, "one two"), answer}, []string{"Grew one", "Grew  two", "Answered"}},
		"a piece after a gap":            {[]any{said(4, "two"), answer}, []string{"Grew one two", "Answered"}},
		"the rest comes with the record": {[]any{said(0, "one"), answer}, []string{"Grew one", "Grew  two", "Answered"}},
		"a text that starts over":        {[]any{said(0, "1, "), said(0, "one"), said(3, " two"), answer}, []string{"Grew 1, ", "Restarted", "Grew one", "Grew  two", "Answered"}},
		"a text that a hook changed":     {[]any{said(0, "1 2"), answer}, []string{"Grew 1 2", "Answered"}},
		"a failed attempt": {[]any{said(0, "1"), event.LLMAttemptEnded{RequestID: requestID, Outcome: event.AttemptLost}, started(1), said(0, "one two"), answer},
			[]string{"Grew 1", "Used", "Abandoned", "Began", "Grew one two", "Answered"}},
		"a late piece": {[]any{answer, said(0, "one")}, []string{"Grew one two", "Answered"}},
	} {
		t.Run(name, func(t *testing.T) {
			folded, changes := fold(t, append(begin, test.steps...)...)
			require.Equal(t, append([]string{"Said", "Began"}, test.want...), names(changes))
			last := changes[len(changes)-1].(Answered)
			require.Equal(t, name == "a text that a hook changed", last.IsReplaced)
			require.Equal(t, "one two", last.Step.Text.String())
			require.Len(t, folded.Entries, 2)
			require.Same(t, last.Step, folded.Entries[1].Step)
		})
	}
}

// TestChangesAddUpToTheThread compares what a reader of changes has with the thread, for any log and any beginning.
func TestChangesAddUpToTheThread(t *testing.T) {
	for seed := range 50 {
		log := eventtest.Log("demo").Example(seed)
		for from := range log {
			folded := &Thread{}
			texts, users, results := map[*Step]string{}, 0, map[*Call]bool{}
			for _, e := range log[from:] {
				for _, change := range folded.Apply(gateway.Item{Event: e}) {
					switch change := change.(type) {
					case Said:
						users++
					case Grew:
						if !change.IsReasoning {
							texts[change.Step] += change.Delta
						}
					case Restarted:
						texts[change.Step] = ""
					case Answered:
						if change.IsReplaced {
							texts[change.Step] = change.Step.Text.String()
						}
					case Returned:
						require.Equal(t, results[change.Call], change.IsLate)
						results[change.Call] = true
					case Ended:
						require.Nil(t, folded.Running())
					}
				}
			}
			for _, in := range folded.Entries {
				switch {
				case in.User != nil:
					users--
				case in.Result != nil:
					require.True(t, results[in.Result])
					delete(results, in.Result)
				case in.Step.IsRecorded():
					require.Equal(t, in.Step.Answer.Content, texts[in.Step])
				}
			}
			require.Zero(t, users)
			require.Empty(t, results)
		}
	}
}

func TestOnlyClientsContinueARequest(t *testing.T) {
	call := func(id, name string) event.ToolCall {
		return event.ToolCall{RequestID: requestID, ToolCallID: id, ToolName: name}
	}
	tools := event.SetTools{Tools: event.ToolList{{Name: "ask", Parameters: event.Object(`{}`)}}}
	ended := event.LLMAttemptEnded{RequestID: requestID, Outcome: event.AttemptToolCalls}
	log := []any{tools, event.UserMessage{Content: "Hi"}, started(2), event.AssistantMessage{RequestID: requestID}, call("c1", "ask"), call("c2", "write"), ended}
	waiting := func(more ...any) string {
		folded, _ := fold(t, append(log[:len(log):len(log)], more...)...)
		results, decisions := folded.Running().Waiting()
		return fmt.Sprint(len(results), len(decisions))
	}
	require.Equal(t, "0 0", waiting(), "a worker executes c2")
	asked := event.ApprovalRequested{RequestID: requestID, ToolCallID: "c2"}
	require.Equal(t, "1 1", waiting(asked))
	require.Equal(t, "0 1", waiting(asked, event.ToolResult{ToolCallID: "c1", Value: []byte(`1`)}))
	require.Equal(t, "0 0", waiting(asked, event.ApprovalDecided{ToolCallID: "c2", Decision: event.Approve}))
	require.Equal(t, "1 0", waiting(asked, event.ApprovalDecided{Decision: event.Deny}, event.ToolResult{ToolCallID: "c2", Error: []byte(`"no"`), IsError: true}))
	require.Equal(t, "1 1", waiting(asked, event.ToolCall{ToolCallID: "c3", ToolName: "write"}), "a client records c3, which is of no request")
	require.Equal(t, "0 0", waiting(asked, event.LLMRequestInterrupted{RequestID: requestID, Reason: event.ReasonCancelled}))
}

func TestARequestRunsUntilItsEnd(t *testing.T) {
	log := []any{event.UserMessage{Content: "Hi"}, started(1), event.AssistantMessage{Content: "of a client"}, event.ToolCall{ToolCallID: "c1"}}
	folded, _ := fold(t, log...)
	require.Equal(t, requestID, folded.Running().ID)
	folded, _ = fold(t, append(log, event.LLMRequestCompleted{RequestID: requestID})...)
	require.Nil(t, folded.Running())
	folded, _ = fold(t, event.AssistantMessage{RequestID: requestID})
	require.Equal(t, requestID, folded.Running().ID, "a reader that begins within it")
}

func TestASessionAnswersItsOwnMessages(t *testing.T) {
	message := event.UserMessage{Content: "Hi"}
	asks := func(steps ...any) bool {
		folded, _ := fold(t, steps...)
		return folded.Asked > folded.Through
	}
	require.True(t, asks(message))
	require.False(t, asks(message, started(1)))
	require.False(t, asks(message, event.SessionEnded{}))
	require.False(t, asks(message, event.SessionStarted{PreviousRunID: "terminated"}))
	require.True(t, asks(message, event.SessionStarted{}, message))
	require.True(t, asks(message, started(1), message))
	require.False(t, asks(message, started(1), message, event.LLMRequestInterrupted{RequestID: requestID, Reason: event.ReasonCancelled, ThroughEventID: "demo:0003"}))
}

func TestAnAnswerFollowsWhatItAnswers(t *testing.T) {
	folded, _ := fold(t, event.UserMessage{Content: "one"}, event.UserMessage{Content: "two"}, started(1), event.UserMessage{Content: "three"},
		event.AssistantMessage{RequestID: requestID, Content: "1"}, event.LLMRequestCompleted{RequestID: requestID})
	var order []string
	for _, in := range folded.Entries {
		if in.User != nil {
			order = append(order, in.User.Content)
		} else {
			order = append(order, in.Step.Text.String())
		}
	}
	require.Equal(t, []string{"one", "1", "two", "three"}, order)
}

func TestFilesOfMessages(t *testing.T) {
	for url, want := range map[string]string{
		"data:image/png;base64,aGk=":       "image/png hi",
		"data:text/plain,a%20b":            "text/plain a b",
		"https://example.com/a.png?size=1": "image/png ",
		"https://example.com/a":            " ",
	} {
		file, err := Attach("a", "", url)
		require.NoError(t, err)
		require.Equal(t, want, file.MediaType+" "+string(file.Source.Data))
	}
	for _, url := range []string{"data:image/png;base64,?", "data:image/png;base64", "data:,"} {
		_, err := Attach("a", "", url)
		require.Error(t, err, url)
	}
	long := strings.Repeat("m", MaxMessageID)
	require.LessOrEqual(t, len(FileID(long, event.MaxInputEvents-1)), event.MaxClientEventID)
	require.NotEqual(t, FileID(long, 1), FileID(long, 11))
}
