package client_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	sdkclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"pgregory.net/rapid"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs/blobstest"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// archivist is a Temporal server whose contexts record input at once, into the archive only. Each input starts a run.
type archivist struct {
	*testing.T
	temporal
	logs    *archive.Archive
	bucket  *blobstest.Bucket
	runs    map[string][]string // of each context
	started map[string]bool     // the contexts that have recorded the start of their session
}

func newArchivist(t *testing.T) *archivist {
	a := &archivist{T: t, bucket: blobstest.New(t), runs: map[string][]string{}, started: map[string]bool{}}
	a.logs = archive.New(a.bucket.Store)
	a.update = func(options sdkclient.UpdateWorkflowOptions) (wire.Appended, error) {
		name, _ := wire.ContextName(options.WorkflowID)
		events, err := event.DecodeInput(options.Args[0].(converter.RawValue).Payload().GetData())
		var bodies []event.Body
		for _, e := range events {
			bodies = append(bodies, e.Body)
		}
		return wire.Appended{EventIDs: a.record(t, name, bodies...)}, err
	}
	return a
}

// record records events in a new run, in the first run of a fork after the start of its session.
func (a *archivist) record(t require.TestingT, name string, bodies ...event.Body) (ids []string) {
	given := len(bodies)
	if _, err := a.logs.Origin(a.Context(), name); err == nil && !a.started[name] && a.runs[name] == nil {
		bodies = slices.Insert(bodies, 0, event.Body(event.SessionStarted{ForkedFrom: "x:0001"}))
	}
	after, behind := a.end(t, name)
	a.started[name] = true
	all := a.begin(t, name, after, behind, bodies...)
	return all[len(all)-given:]
}

// end returns the counter of the newest event of a context and its newest run.
func (a *archivist) end(t require.TestingT, name string) (after int, run string) {
	folder, err := a.logs.Folder(a.Context(), name)
	require.NoError(t, err)
	if folder.IsEmpty() {
		return 0, ""
	}
	newest, err := folder.Run(a.Context(), "")
	require.NoError(t, err)
	return len(a.log(t, name)), newest.ID
}

// begin records events in a new run, which continues another after a counter.
func (a *archivist) begin(t require.TestingT, name string, after int, behind string, bodies ...event.Body) (ids []string) {
	folder, err := a.logs.Folder(a.Context(), name)
	require.NoError(t, err)
	run := fmt.Sprint("run-", len(a.runs[name])+1)
	require.NoError(t, folder.Register(a.Context(), archive.Run{ID: run, After: after, Behind: behind}))
	a.runs[name] = append(a.runs[name], run)
	var events []event.Event
	for i, body := range bodies {
		_, local := event.CutTenant(name)
		e := event.Event{ID: event.FormatID(name, after+i+1), ContextName: local, Timestamp: eventtest.Epoch, Body: body}
		ids = append(ids, e.ID)
		events = append(events, e)
	}
	for segment := range slices.Chunk(events, 100) {
		_, err := a.logs.Write(a.Context(), name, run, segment)
		require.NoError(t, err)
	}
	return ids
}

func (a *archivist) open(t require.TestingT, name string) *client.Context {
	return archived(t, &a.temporal, a.logs, name)
}

func (a *archivist) log(t require.TestingT, name string) (log []event.Event) {
	for e, err := range a.open(t, name).Events(a.Context(), "") {
		require.NoError(t, err)
		log = append(log, e)
	}
	return log
}

// The reference model copies the whole log of a context into each of its forks.
type copies map[string][]event.Event

func (c copies) record(name string, bodies ...event.Body) {
	for _, body := range bodies {
		c[name] = append(c[name], event.Event{ID: event.FormatID(name, len(c[name])+1), ContextName: name, Timestamp: eventtest.Epoch, Body: body})
	}
}

func (c copies) fork(name, as string, at int) {
	for _, e := range c[name][:at] {
		c[as] = append(c[as], e.MovedTo(as))
	}
}

// TestABranchContinuesTheConversationAtItsPoint compares branches with copies of plain lists: in contexts whose logs
// consist of many runs, were reset, have compactions, and are forks of forks.
func TestABranchContinuesTheConversationAtItsPoint(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		a, twin := newArchivist(t), copies{}
		names := []string{"demo"}
		isReset := false
		shared := map[string]int{} // the number of events that a fork shares with its origin
		body := func(name string) event.Body {
			label := fmt.Sprint("event ", len(twin[name])+1, " of ", name, " ", len(a.runs[name]))
			switch rapid.SampledFrom([]string{"user", "user", "answer", "setting", "file", "start", "compaction"}).Draw(r, "body") {
			case "answer":
				return event.AssistantMessage{Content: label}
			case "setting":
				return eventtest.Of[event.SetTimeout]().Draw(r, "timeout")
			case "file":
				return event.FileAttachment{Source: event.Source{Type: event.SourceURL, URL: "https://example.com/"}, MediaType: "image/png", FileName: label}
			case "start":
				return event.SessionStarted{}
			case "compaction":
				compacted := eventtest.Of[event.Compacted]().Draw(r, "compaction")
				compacted.ThroughEventID = event.FormatID(name, rapid.IntRange(1, len(twin[name])+1).Draw(r, "through"))
				compacted.RequestID = event.FormatRequestID(name, 1)
				return compacted
			}
			return event.UserMessage{Content: label, TriggersTurn: new(false)}
		}
		record := func(name string, count int) {
			var bodies []event.Body
			if a.runs[name] == nil {
				bodies = append(bodies, event.SessionStarted{})
				for range rapid.IntRange(0, 2).Draw(r, "settings") {
					bodies = append(bodies, eventtest.Of[event.SetTimeout]().Draw(r, "timeout"))
				}
			}
			for range count {
				bodies = append(bodies, body(name))
			}
			after, behind := a.end(r, name)
			a.begin(r, name, after, behind, bodies...)
			twin.record(name, bodies...)
		}
		record("demo", 3)
		for range rapid.IntRange(1, 12).Draw(r, "steps") {
			name := rapid.SampledFrom(names).Draw(r, "context")
			length := len(twin[name])
			switch rapid.SampledFrom([]string{"continue", "branch", "branch", "reset"}).Draw(r, "step") {
			case "continue":
				record(name, rapid.IntRange(1, 4).Draw(r, "events"))
			case "reset":
				folder, err := a.logs.Folder(t.Context(), name)
				require.NoError(r, err)
				newest, err := folder.Run(t.Context(), "")
				require.NoError(r, err)
				if newest.Origin != nil || newest.After == length {
					continue
				}
				isReset = true
				at := rapid.IntRange(newest.After+1, length).Draw(r, "reset point")
				twin[name] = twin[name][:at]
				again := event.UserMessage{Content: fmt.Sprint("after reset ", len(a.runs[name])), TriggersTurn: new(false)}
				a.begin(r, name, at, newest.ID, again)
				twin.record(name, again)
			case "branch":
				at := rapid.IntRange(1, length).Draw(r, "at")
				if n := shared[name]; n > 0 && rapid.Bool().Draw(r, "near the origin") {
					at = min(length, n+rapid.IntRange(0, 4).Draw(r, "after the origin"))
				}
				o := client.BranchOptions{At: event.FormatID(name, at)}
				if at < length && rapid.Bool().Draw(r, "before the next") {
					o = client.BranchOptions{Before: event.FormatID(name, at+1)}
				}
				created, err := a.open(r, name).Branch(t.Context(), o)
				require.NoError(r, err)
				require.NotContains(r, names, created.ContextName, "a generated name is new")
				require.True(r, strings.HasPrefix(created.ContextName, "demo-"), created.ContextName)
				log := a.log(r, created.ContextName)
				origin, common := created.ForkedFrom[:strings.LastIndex(created.ForkedFrom, ":")], event.Counter(created.ForkedFrom)
				twin.fork(name, created.ContextName, at)
				require.Equal(r, conversation(twin[created.ContextName]), conversation(log), "%s at %d", name, at)
				if !isReset {
					twin.fork(origin, "same", common)
					require.Equal(r, moved(twin["same"], created.ContextName), log[:common])
					delete(twin, "same")
				}
				twin[created.ContextName], shared[created.ContextName] = log, event.Counter(created.ForkedFrom)
				names = append(names, created.ContextName)
			}
		}
		for _, name := range names {
			require.Equal(r, twin[name], a.log(r, name), name)
		}
	})
}

func moved(log []event.Event, name string) (events []event.Event) {
	for _, e := range log {
		events = append(events, e.MovedTo(name))
	}
	return events
}

// conversation is what a model receives, without ids.
func conversation(log []event.Event) reducer.ReducedContext {
	reduced := reducer.Reduce(reducer.Initial(), log...)
	var messages []reducer.Message
	for _, m := range reduced.Messages {
		m.EventID = ""
		messages = append(messages, m)
	}
	reduced.Messages = messages
	return reduced
}

func TestAnAnswerIsRegeneratedFromTheEventBeforeItsAttempt(t *testing.T) {
	cold := &event.RequestSettings{Temperature: new(0.0)}
	hello := event.UserMessage{Content: "Hello", Settings: cold}
	attempt := func(request, number, through int) event.Body {
		return event.LLMRequestStarted{RequestID: requestID(request), ProviderID: "openai", Model: "m", ThroughEventID: id(through), Attempt: number}
	}
	answer := func(request, through int) event.Body {
		return event.AssistantMessage{Content: "Hi", RequestID: requestID(request), ThroughEventID: id(through)}
	}
	ended := func(request int, outcome event.AttemptOutcome) event.Body {
		return event.LLMAttemptEnded{RequestID: requestID(request), Attempt: 1, Outcome: outcome}
	}
	summary := func(request, through int) event.Body {
		return event.LLMRequestStarted{RequestID: requestID(request), ProviderID: "openai", Model: "m", ThroughEventID: id(through), Attempt: 1, Purpose: event.PurposeCompaction}
	}
	compacted := event.Compacted{
		RequestID: requestID(1), Strategy: event.StrategyTruncate, ThroughEventID: id(1), Messages: 1, TokensBefore: 9, Window: 8, ProviderID: "openai", Model: "m",
	}
	call := event.ToolCall{ToolCallID: "call_1", ToolName: "weather", RequestID: requestID(1), MessageID: id(4)}
	result := event.ToolResult{ToolCallID: "call_1", Value: []byte(`"rain"`)}
	for name, test := range map[string]struct {
		log      []event.Body // after the start of the session; the last one is the answer
		at       int
		settings *event.RequestSettings
	}{
		"one attempt":            {[]event.Body{hello, attempt(1, 1, 2), answer(1, 2)}, 2, cold},
		"a corrected model":      {[]event.Body{hello, attempt(1, 1, 2), attempt(1, 1, 2), answer(1, 2)}, 2, cold},
		"a retry":                {[]event.Body{hello, attempt(1, 1, 2), ended(1, event.AttemptFailed), attempt(1, 2, 2), answer(1, 2)}, 2, cold},
		"new input":              {[]event.Body{hello, attempt(1, 1, 2), event.UserMessage{Content: "And?"}, attempt(1, 2, 4), answer(1, 4)}, 4, nil},
		"input after the answer": {[]event.Body{hello, attempt(1, 1, 2), event.UserMessage{Content: "And?"}, answer(1, 2)}, 2, cold},
		"after a step":           {[]event.Body{hello, attempt(1, 1, 2), answer(1, 2), call, ended(1, event.AttemptToolCalls), result, attempt(1, 2, 7), answer(1, 7)}, 7, cold},
		"after a step, in a queue": {
			[]event.Body{hello, attempt(1, 1, 2), answer(1, 2), call, ended(1, event.AttemptToolCalls), event.UserMessage{Content: "And?"}, result, attempt(1, 2, 2), answer(1, 2)},
			8, nil,
		},
		"after a summary": {[]event.Body{
			hello, attempt(1, 1, 2), ended(1, event.AttemptFailed), summary(1, 2), compacted, ended(1, event.AttemptCompacted), attempt(1, 3, 2), answer(1, 2),
		}, 7, cold},
		"a second request":        {[]event.Body{hello, attempt(1, 1, 2), answer(1, 2), completed(1), event.AnswerRequested{}, attempt(2, 1, 6), answer(2, 6)}, 6, nil},
		"an answer of a client":   {[]event.Body{hello, event.AssistantMessage{Content: "Hi"}}, 2, cold},
		"an answer to no request": {[]event.Body{event.UserMessage{Content: "Hello", TriggersTurn: new(false)}, event.AssistantMessage{Content: "Hi"}}, 2, nil},
	} {
		t.Run(name, func(t *testing.T) {
			a := newArchivist(t)
			ids := a.begin(t, "demo", 0, "", append([]event.Body{event.SessionStarted{}}, test.log...)...)
			other := event.New(event.SetProviderConfig{ProviderID: "ollama", Model: "llama3.2"})
			created, err := a.open(t, "demo").Branch(t.Context(), client.BranchOptions{Regenerate: ids[len(ids)-1], Events: []event.Event{other}})
			require.NoError(t, err)
			require.Equal(t, id(test.at), created.ForkedFrom)
			log := a.log(t, created.ContextName)[test.at:]
			require.Equal(t, []event.Body{other.Body, event.AnswerRequested{Settings: test.settings}}, []event.Body{log[1].Body, log[2].Body})
			require.Equal(t, []string{log[1].ID, log[2].ID}, created.Receipt.EventIDs)
		})
	}
}

func TestAnAnswerIsRegeneratedAgainAsASibling(t *testing.T) {
	a := newArchivist(t)
	a.begin(t, "demo", 0, "", event.SessionStarted{}, event.UserMessage{Content: "Hello"}, event.AssistantMessage{Content: "Hi"})
	other := event.New(event.SetProviderConfig{ProviderID: "ollama", Model: "llama3.2"})
	_, err := a.open(t, "demo").Branch(t.Context(), client.BranchOptions{Regenerate: "demo:0003", Events: []event.Event{other}})
	require.NoError(t, err)
	a.record(t, "demo-2", event.AssistantMessage{Content: "Hello"})
	again, err := a.open(t, "demo-2").Branch(t.Context(), client.BranchOptions{Regenerate: "demo-2:0006"})
	require.NoError(t, err)
	require.Equal(t, "demo:0002", again.ForkedFrom)
	require.Equal(t, conversation(a.log(t, "demo-2")[:5]), conversation(a.log(t, again.ContextName)), "with the model of demo-2")
}

func TestABranchHasAnOwner(t *testing.T) {
	a := newArchivist(t)
	a.begin(t, "demo", 0, "", event.SessionStarted{}, event.UserMessage{Content: "Hello"}, event.AssistantMessage{Content: "Hi"})
	created, err := a.open(t, "demo").Branch(t.Context(), client.BranchOptions{At: "demo:0003", Owner: "ann"})
	require.NoError(t, err)
	require.Nil(t, created.Receipt, "the caller sent no events")
	require.Equal(t, event.SetDetails{Owner: "ann"}, a.log(t, created.ContextName)[4].Body)

	created, err = a.open(t, "demo").Branch(t.Context(), client.BranchOptions{Regenerate: "demo:0003", Owner: "ann"})
	require.NoError(t, err)
	require.Len(t, created.Receipt.ClientEventIDs, 1)
	log := a.log(t, created.ContextName)
	require.Equal(t, []event.Body{event.AnswerRequested{}, event.SetDetails{Owner: "ann"}}, []event.Body{log[3].Body, log[4].Body})

	a.record(t, created.ContextName, event.AssistantMessage{Content: "Hello"})
	sibling, err := a.open(t, created.ContextName).Branch(t.Context(), client.BranchOptions{Regenerate: event.FormatID(created.ContextName, 6), Owner: "bob"})
	require.NoError(t, err)
	require.Equal(t, "demo:0002", sibling.ForkedFrom)
	details := reducer.Load("demo", reducer.Reduce, a.log(t, sibling.ContextName)...).Details
	require.Equal(t, reducer.Details{Owner: "bob"}, details)
}

func TestTheNumberOfReadsOfABranchIsConstant(t *testing.T) {
	var reads [2][3]int
	for i, turns := range []int{500, 5000} {
		a := newArchivist(t)
		var bodies []event.Body
		for n := range turns {
			asked := 4*n + 1
			bodies = append(bodies, event.UserMessage{Content: "Hello"},
				event.LLMRequestStarted{RequestID: requestID(n + 1), ProviderID: "openai", Model: "m", ThroughEventID: id(asked), Attempt: 1},
				event.AssistantMessage{Content: "Hi", RequestID: requestID(n + 1), ThroughEventID: id(asked)},
				event.LLMRequestCompleted{RequestID: requestID(n + 1)})
		}
		a.begin(t, "demo", 0, "", bodies...)
		_, err := a.logs.Store().Identity(t.Context())
		require.NoError(t, err)
		newest := 4*(turns-1) + 1
		for k, o := range []client.BranchOptions{
			{At: id(newest), Name: "at"}, {Before: id(newest), Name: "before"}, {Regenerate: id(newest + 2), Name: "regenerate"},
		} {
			before := a.bucket.Reads()
			f := &temporal{update: func(sdkclient.UpdateWorkflowOptions) (wire.Appended, error) { return wire.Appended{}, nil }}
			_, err := archived(t, f, a.logs, "demo").Branch(t.Context(), o)
			require.NoError(t, err)
			reads[i][k] = a.bucket.Reads() - before
		}
	}
	require.Equal(t, reads[0], reads[1])
	require.Less(t, reads[1][2], 30)
}

func TestBranchErrors(t *testing.T) {
	a := newArchivist(t)
	a.begin(t, "demo", 0, "", event.UserMessage{Content: "Hello"}, event.AssistantMessage{Content: "Hi"})
	a.begin(t, "taken", 0, "", event.SessionStarted{})
	for name, test := range map[string]struct {
		client.BranchOptions
		want error
		text string
	}{
		"no point":            {client.BranchOptions{}, nil, "at: want one of at, before and regenerate"},
		"two points":          {client.BranchOptions{At: "demo:0001", Before: "demo:0002"}, nil, "at: want one of at, before and regenerate"},
		"of another context":  {client.BranchOptions{Before: "taken:0001"}, nil, `before: "taken:0001" is not an event of context demo (want an id like demo:0001)`},
		"before the first":    {client.BranchOptions{Before: "demo:0001"}, nil, "before: the log begins with this event (send to a new context)"},
		"of a message":        {client.BranchOptions{Regenerate: "demo:0001"}, nil, "regenerate: event demo:0001 is no answer (want an AssistantMessageEvent)"},
		"beyond the log":      {client.BranchOptions{Regenerate: "demo:0003"}, client.ErrNoEvent, "read event demo:0003: no such event"},
		"as another context":  {client.BranchOptions{At: "demo:0001", Name: "taken"}, client.ErrExists, ""},
		"as an invalid name":  {client.BranchOptions{At: "demo:0001", Name: ".."}, client.ErrName, ""},
		"with invalid events": {client.BranchOptions{At: "demo:0001", Events: []event.Event{event.New(event.SessionEnded{})}}, nil, "SessionEndedEvent"},
	} {
		t.Run(name, func(t *testing.T) {
			created, err := a.open(t, "demo").Branch(t.Context(), test.BranchOptions)
			require.Empty(t, created)
			require.Error(t, err)
			require.ErrorContains(t, err, test.text)
			if test.want != nil {
				require.ErrorIs(t, err, test.want)
			}
			require.Empty(t, a.start.ID, "no run is started")
		})
	}
	_, err := archived(t, &temporal{}, nil, "demo").Branch(t.Context(), client.BranchOptions{At: "demo:0001"})
	require.ErrorIs(t, err, client.ErrNoArchive)
}

// The registration of a fork names its origin, also after the origin was deleted.
func TestABranchOfAForkWithoutItsOrigin(t *testing.T) {
	a := newArchivist(t)
	a.begin(t, "demo", 0, "", event.SessionStarted{}, event.UserMessage{Content: "Hello"}, event.AssistantMessage{Content: "Hi"})
	_, err := a.open(t, "demo").Branch(t.Context(), client.BranchOptions{Before: "demo:0002"})
	require.NoError(t, err)
	a.record(t, "demo-2", event.UserMessage{Content: "Bye"})
	for _, name := range a.bucket.Names() {
		if strings.HasPrefix(name, "contexts/demo/") {
			a.bucket.Set(name, nil)
		}
	}
	got, err := a.open(t, "demo-2").Branches(t.Context())
	require.NoError(t, err)
	require.Equal(t, client.Branches{Contexts: []client.Branch{{ContextName: "demo-2"}}, Choices: []client.Choice{}}, got)
}
