package a2a

import (
	"fmt"
	"iter"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest"
	"github.com/seed-9ed7edd4/chronicle/gateway"
)

const requestID = "demo:r0001"

// reader folds a stream, as an agent does.
type reader struct{ task }

func (c *reader) read(updates []streamResponse) {
	for _, u := range updates {
		switch {
		case u.Task != nil:
			c.task = *u.Task
		case u.StatusUpdate != nil && u.StatusUpdate.Metadata["toolProgress"] == nil:
			if m := c.Status.Message; m != nil {
				c.History = append(slices.Clone(c.History), *m)
			}
			c.Status, c.Metadata = u.StatusUpdate.Status, u.StatusUpdate.Metadata
		case u.ArtifactUpdate != nil:
			a := u.ArtifactUpdate.Artifact
			c.Artifacts = slices.Clone(c.Artifacts)
			i := slices.IndexFunc(c.Artifacts, func(known artifact) bool { return known.ArtifactID == a.ArtifactID })
			switch {
			case i < 0:
				c.Artifacts = append(c.Artifacts, a)
			case u.ArtifactUpdate.Append:
				c.Artifacts[i].Parts = append(slices.Clone(c.Artifacts[i].Parts), a.Parts...)
			default:
				c.Artifacts[i] = a
			}
		}
	}
}

// render shows a task. Streams do not have the messages of clients.
func (t task) render() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s %s %v\n", t.ID, t.Status.State, t.Metadata)
	for _, a := range t.Artifacts {
		text := ""
		for _, p := range a.Parts {
			text += *p.Text
		}
		if text != "" {
			fmt.Fprintf(&out, "%s: %s\n", a.ArtifactID, text)
		}
	}
	messages := t.History
	if t.Status.Message != nil {
		messages = append(slices.Clone(messages), *t.Status.Message)
	}
	for _, m := range messages {
		if m.Role == roleAgent {
			fmt.Fprintf(&out, "%s", m.MessageID)
			for _, p := range m.Parts {
				if p.Text != nil {
					fmt.Fprintf(&out, " %s", *p.Text)
				}
				fmt.Fprintf(&out, " %s", p.Data)
			}
			out.WriteByte('\n')
		}
	}
	return out.String()
}

// live returns the items of a log with the deltas of each attempt, in pieces. What an attempt said that gave no answer is lost.
func live(log []event.Event) (items []gateway.Item) {
	for i, e := range log {
		items = append(items, gateway.Item{Event: e})
		body, ok := e.Body.(event.LLMRequestStarted)
		if !ok || body.Purpose != "" {
			continue
		}
		text := "" // of an attempt that runs at the end of the log
		for _, next := range log[i+1:] {
			if event.RequestOf(next.Body) != body.RequestID {
				continue
			}
			text = "lost text"
			if answer, ok := next.Body.(event.AssistantMessage); ok {
				text = answer.Content
			}
			break
		}
		half := len(text) / 2
		for _, d := range []struct {
			offset int
			text   string
		}{{0, text[:half]}, {half, text[half:]}} {
			delta := event.TextDelta{RequestID: body.RequestID, Attempt: max(1, body.Attempt), Delta: d.text, Reset: d.offset == 0}
			items = append(items, gateway.Item{Event: event.New(delta), Offset: d.offset})
		}
	}
	return items
}

// resumed returns the items after a cut: the running text begins with all of it.
func resumed(items []gateway.Item, cut int) []gateway.Item {
	whole := gateway.Item{}
	for _, item := range items[:cut] {
		d, isDelta := item.Event.Body.(event.TextDelta)
		switch {
		case !isDelta:
			whole = gateway.Item{}
		case d.Reset:
			whole = item
		default:
			before := whole.Event.Body.(event.TextDelta)
			before.Delta += d.Delta
			whole.Event = event.New(before)
		}
	}
	if whole.Event.Body == nil {
		return items[cut:]
	}
	return append([]gateway.Item{whole}, items[cut:]...)
}

func taskAt(trigger int, tools event.SetTools) *turn {
	return newTurn("demo", new(request).newThread(tools), trigger)
}

// loaded returns a task as a gateway loads it: from just before its first event on, with the newest tools.
func loaded(trigger int, items []gateway.Item) *turn {
	var tools event.SetTools
	for _, item := range items {
		if body, ok := item.Event.Body.(event.SetTools); ok {
			tools = body
		}
	}
	t := taskAt(trigger, tools)
	for _, item := range items {
		if n := event.Counter(item.Event.ID); n >= max(1, trigger-maxParts) {
			t.add(item)
		}
	}
	return t
}

// logs are those of the stories of the reducer, and random ones.
func logs(t *testing.T) map[string][]event.Event {
	t.Helper()
	all := map[string][]event.Event{}
	files, err := filepath.Glob("../../reducer/testdata/session/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	recorded := regexp.MustCompile(`(?m)^  record (\S+) (\S+) \{(.*)\}$`)
	for _, file := range files {
		story, err := txtar.ParseFile(file)
		require.NoError(t, err)
		for _, match := range recorded.FindAllStringSubmatch(string(story.Files[1].Data), -1) {
			var e event.Event
			text := fmt.Sprintf(`{"_tag":%q,"id":%q,"contextName":"demo",%s}`, match[2], match[1], match[3])
			require.NoError(t, e.UnmarshalJSON([]byte(strings.Replace(text, ",}", "}", 1))), text)
			all[file] = append(all[file], e)
		}
	}
	for seed := range 30 {
		all[fmt.Sprintf("random log %d", seed)] = eventtest.Log("demo").Example(seed)
	}
	return all
}

// TestAStreamCutAnywhereShowsTheTask compares what a client has that joins a stream anywhere, with the task as the log shows it.
func TestAStreamCutAnywhereShowsTheTask(t *testing.T) {
	tasks, seen := 0, map[state]int{}
	for name, log := range logs(t) {
		items := live(log)
		for _, e := range log {
			if !event.RequiresAnswer(e.Body) {
				continue
			}
			trigger := event.Counter(e.ID)
			want := taskAt(trigger, event.SetTools{})
			for _, e := range log {
				want.add(gateway.Item{Event: e})
			}
			tasks++
			for cut := range items {
				now := loaded(trigger, items[:cut])
				if now.Status.State == "" {
					continue
				}
				seen[now.Status.State]++
				var c reader
				c.read([]streamResponse{{Task: now.show(nil)}})
				for _, item := range resumed(items, cut) {
					now.add(item)
					c.read(now.updates)
				}
				require.Equal(t, want.render(), c.render(), "%s: %s from item %d", name, want.ID, cut)
				require.Equal(t, want.task, now.task, name)
			}
		}
	}
	require.Greater(t, tasks, 100)
	for _, s := range []state{stateCompleted, stateFailed, stateCanceled, stateInputRequired, stateWorking, stateSubmitted} {
		require.Positive(t, seen[s], s)
	}
}

// TestAListHasTheTasks compares the tasks of a list, which share a thread, with each of them.
func TestAListHasTheTasks(t *testing.T) {
	for name, log := range logs(t) {
		all, err := new(request).tasksOf("demo", sequence(log))
		require.NoError(t, err)
		for _, e := range log {
			if event.RequiresAnswer(e.Body) {
				want := taskAt(event.Counter(e.ID), event.SetTools{})
				for _, e := range log {
					want.add(gateway.Item{Event: e})
				}
				i := slices.IndexFunc(all, func(t *turn) bool { return t.ID == e.ID })
				require.Equal(t, want.task, all[i].task, "%s: %s", name, e.ID)
			}
		}
	}
}

func sequence(log []event.Event) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for _, e := range log {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// Messages may wait by the thousand for an approval.
func TestAListOfWaitingTasksGrowsWithTheLog(t *testing.T) {
	allocations := func(n int) float64 {
		var log []event.Event
		for i := range n {
			e := event.New(event.UserMessage{Content: "Hi"})
			e.ID, e.ContextName = event.FormatID("demo", i+1), "demo"
			log = append(log, e)
		}
		return testing.AllocsPerRun(1, func() {
			all, err := new(request).tasksOf("demo", sequence(log))
			require.NoError(t, err)
			require.Len(t, all, n)
		})
	}
	require.Less(t, allocations(400), 3*allocations(200))
}

func fold(tools event.SetTools, trigger int, bodies ...event.Body) *turn {
	t := taskAt(trigger, tools)
	for i, body := range bodies {
		e := event.New(body)
		e.ID, e.ContextName = event.FormatID("demo", i+1), "demo"
		t.add(gateway.Item{Event: e})
	}
	return t
}

func started(through int) event.LLMRequestStarted {
	return event.LLMRequestStarted{RequestID: requestID, ThroughEventID: event.FormatID("demo", through), Attempt: 1}
}

func TestHowATaskEnds(t *testing.T) {
	message := event.UserMessage{Content: "Hi"}
	answered := event.AssistantMessage{RequestID: requestID, Content: "Hello"}
	for name, test := range map[string]struct {
		rest []event.Body
		want state
		why  string
	}{
		"an answer":            {[]event.Body{started(1), answered, event.LLMRequestCompleted{RequestID: requestID, FinishReason: "stop"}}, stateCompleted, ""},
		"a failure":            {[]event.Body{started(1), event.LLMRequestFailed{RequestID: requestID, Error: "status 503"}}, stateFailed, "status 503"},
		"a timeout":            {[]event.Body{started(1), event.LLMRequestInterrupted{RequestID: requestID, Reason: event.ReasonTimeout}}, stateFailed, "timed out"},
		"a newer message":      {[]event.Body{started(1), event.LLMRequestInterrupted{RequestID: requestID, Reason: event.ReasonNewUserInput}}, stateCanceled, "newer message"},
		"an interrupt":         {[]event.Body{started(1), event.LLMRequestInterrupted{RequestID: requestID, Reason: event.ReasonCancelled}}, stateCanceled, "interrupted"},
		"a closed session":     {[]event.Body{event.SessionEnded{Reason: "closed"}}, stateCanceled, "session ended"},
		"a fork":               {[]event.Body{event.SessionStarted{ForkedFrom: "other:0002"}}, stateCanceled, "session ended"},
		"a terminated run":     {[]event.Body{started(1), event.SessionStarted{PreviousRunID: "run"}, event.LLMRequestInterrupted{RequestID: requestID, Reason: event.ReasonCancelled}}, stateCanceled, "interrupted"},
		"another request":      {[]event.Body{started(0), answered, event.LLMRequestCompleted{RequestID: requestID}}, stateSubmitted, ""},
		"dropped with another": {[]event.Body{started(0), answered, event.LLMRequestCompleted{RequestID: requestID, ThroughEventID: "demo:0001"}}, stateCanceled, "before it was answered"},
	} {
		t.Run(name, func(t *testing.T) {
			of := fold(event.SetTools{}, 1, append([]event.Body{message}, test.rest...)...)
			require.Equal(t, test.want, of.Status.State)
			if test.why == "" {
				require.Nil(t, of.Status.Message)
			} else {
				require.Contains(t, *of.Status.Message.Parts[0].Text, test.why)
			}
		})
	}
	short := fold(event.SetTools{}, 1, message, started(1), answered, event.LLMRequestCompleted{RequestID: requestID, FinishReason: "length"})
	require.Equal(t, metadata{"finishReason": "length"}, short.Metadata)
	require.Equal(t, stateRejected, fold(event.SetTools{}, 1, event.InputRejected{Reason: "busy"}).Status.State)
	require.Empty(t, fold(event.SetTools{}, 1, event.SystemPrompt{}, started(1)).Status.State, "the event begins no task")
}

func TestATaskAsksAgainForWhatIsLeft(t *testing.T) {
	tools := event.SetTools{Tools: event.ToolList{{Name: "ask", Parameters: event.Object(`{}`)}}}
	call := func(id, name string) event.ToolCall {
		return event.ToolCall{RequestID: requestID, ToolCallID: id, ToolName: name}
	}
	log := []event.Body{
		event.UserMessage{Content: "Hi"}, started(1), event.AssistantMessage{RequestID: requestID}, call("c1", "ask"), call("c2", "write"),
		event.LLMAttemptEnded{RequestID: requestID, Attempt: 1, Outcome: event.AttemptToolCalls},
	}
	asks := func(more ...event.Body) string {
		of := fold(tools, 1, append(slices.Clone(log), more...)...)
		if !of.isPaused() {
			return string(of.Status.State)
		}
		return *of.Status.Message.Parts[0].Text
	}
	approval := event.ApprovalRequested{RequestID: requestID, ToolCallID: "c2"}
	result := event.ToolResult{ToolCallID: "c1", Value: []byte(`"blue"`)}
	require.Equal(t, string(stateWorking), asks(), "a worker executes c2")
	require.Equal(t, "ask {} waits for a result (reply with it)\nwrite {} waits for a decision (reply with approve or deny)\n", asks(approval))
	require.Equal(t, "write {} waits for a decision (reply with approve or deny)\n", asks(approval, result))
	require.Equal(t, "ask {} waits for a result (reply with it)\n", asks(approval, event.ApprovalDecided{Decision: event.Deny}, event.ToolResult{ToolCallID: "c2", Error: []byte(`"denied"`), IsError: true}))
	require.Equal(t, string(stateWorking), asks(approval, result, event.ApprovalDecided{Decision: event.Approve}))
}
