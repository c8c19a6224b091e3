package client_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"
	"pgregory.net/rapid"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// TestChoicesAreThePlacesWhereLogsPart compares choices with the complete logs of all contexts, as lists of unique texts.
func TestChoicesAreThePlacesWhereLogsPart(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		a := newArchivist(t)
		logs, by := map[string][]string{}, map[string]string{} // who recorded each text
		record := func(name string) {
			text := fmt.Sprint("event ", len(by))
			after, behind := a.end(r, name)
			a.begin(r, name, after, behind, event.UserMessage{Content: text, TriggersTurn: new(false)})
			logs[name], by[text] = append(logs[name], text), name
		}
		names := []string{"demo"}
		record("demo")
		record("demo")
		for n := range rapid.IntRange(0, 15).Draw(r, "steps") {
			name := rapid.SampledFrom(names).Draw(r, "context")
			if rapid.Bool().Draw(r, "continue") {
				record(name)
				continue
			}
			at := rapid.IntRange(1, len(logs[name])).Draw(r, "at")
			fork := fmt.Sprint("fork-", n)
			require.NoError(r, a.open(r, name).Fork(t.Context(), event.FormatID(name, at), fork))
			names, logs[fork] = append(names, fork), slices.Clone(logs[name][:at])
		}
		for _, name := range names {
			want := []client.Choice{}
			for n := 1; n <= len(logs[name]); n++ {
				next := func(other string) string { // the context that recorded what follows the first n events
					if len(logs[other]) == n {
						return other
					}
					return by[logs[other][n]]
				}
				choice := client.Choice{After: event.FormatID(name, n)}
				for _, other := range names {
					if len(logs[other]) < n || !slices.Equal(logs[other][:n], logs[name][:n]) {
						continue
					}
					way := next(other)
					if way == next(name) {
						way = name
					}
					if !slices.Contains(choice.Contexts, way) {
						choice.Contexts = append(choice.Contexts, way)
					}
				}
				if len(choice.Contexts) > 1 {
					slices.SortFunc(choice.Contexts, func(a, b string) int {
						place := func(name string) int { return slices.Index(names, name) }
						return place(a) - place(b)
					})
					want = append(want, choice)
				}
			}
			got, err := a.open(r, name).Branches(t.Context())
			require.NoError(r, err)
			for _, choice := range got.Choices {
				slices.SortFunc(choice.Contexts, func(a, b string) int { return slices.Index(names, a) - slices.Index(names, b) })
			}
			require.Equal(r, want, got.Choices, "%s in %v", name, logs)
			require.Len(r, got.Contexts, len(names))
		}
	})
}

func TestBranchesAreListedNewestFirst(t *testing.T) {
	a := newArchivist(t)
	a.begin(t, "demo", 0, "", event.SessionStarted{}, event.UserMessage{Content: "Hello"}, event.AssistantMessage{Content: "Hi"})
	first, err := a.open(t, "demo").Branch(t.Context(), client.BranchOptions{Before: "demo:0002"})
	require.NoError(t, err)
	second, err := a.open(t, "demo-2").Branch(t.Context(), client.BranchOptions{At: "demo-2:0001", Name: "mine"})
	require.NoError(t, err)
	require.Equal(t, client.Branched{ContextName: "demo-2", ForkedFrom: "demo:0001"}, first)
	require.Equal(t, client.Branched{ContextName: "mine", ForkedFrom: "demo:0001"}, second, "demo-2 shares the event with demo")

	for _, name := range []string{"demo", "demo-2", "mine"} {
		got, err := a.open(t, name).Branches(t.Context())
		require.NoError(t, err)
		require.Len(t, got.Contexts, 3)
		require.Equal(t, client.Branch{ContextName: "demo", Preview: "Hello"}, got.Contexts[0])
		require.Equal(t, []string{"mine", "demo-2"}, []string{got.Contexts[1].ContextName, got.Contexts[2].ContextName})
		require.Equal(t, "demo:0001", got.Contexts[1].ForkedFrom)
		require.True(t, got.Contexts[1].CreatedAt.After(got.Contexts[2].CreatedAt))
		require.Equal(t, []client.Choice{{After: name + ":0001", Contexts: []string{"demo", "demo-2", "mine"}}}, got.Choices)
	}

	_, err = a.open(t, "unknown").Branches(t.Context())
	require.ErrorIs(t, err, client.ErrNoContext)
	_, err = archived(t, &temporal{}, nil, "demo").Branches(t.Context())
	require.ErrorIs(t, err, client.ErrNoArchive)
}

// titled is a Temporal server whose contexts have titles.
type titled struct {
	*archivist
	titles map[string]string // by workflow
}

func (f *titled) DescribeWorkflowExecution(_ context.Context, id, _ string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	title, ok := f.titles[id]
	if !ok {
		return nil, serviceerror.NewNotFound("no such workflow")
	}
	payload, err := converter.GetDefaultDataConverter().ToPayload(title)
	return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{
		Execution:        &commonpb.WorkflowExecution{WorkflowId: id, RunId: "forgotten"},
		SearchAttributes: &commonpb.SearchAttributes{IndexedFields: map[string]*commonpb.Payload{wire.AttributeTitle: payload}},
	}}, err
}

func TestBranchesHaveTitlesAndPreviews(t *testing.T) {
	a := newArchivist(t)
	a.begin(t, "demo", 0, "", event.SessionStarted{}, event.UserMessage{Content: "Hello"}, event.AssistantMessage{Content: "Hi"})
	for range 4 {
		_, err := a.open(t, "demo").Branch(t.Context(), client.BranchOptions{At: "demo:0002"})
		require.NoError(t, err)
	}
	a.record(t, "demo-2", event.SetTimeout{TimeoutMs: 1}, event.AssistantMessage{Content: "Good\nday"})
	a.record(t, "demo-3", event.UserMessage{Content: "And?"}, event.UserMessage{Content: "Well?"})
	f := &titled{a, map[string]string{"context:demo": "Greetings", "context:demo-2": "Greetings", "context:demo-3": "Questions"}}
	c := client.New(client.Options{Temporal: f, Archive: a.logs})
	read := func() map[string][2]string {
		demo, err := c.Open("demo-3")
		require.NoError(t, err)
		got, err := demo.Branches(t.Context())
		require.NoError(t, err)
		texts := map[string][2]string{}
		for _, b := range got.Contexts {
			texts[b.ContextName] = [2]string{b.Title, b.Preview}
		}
		return texts
	}
	require.Equal(t, map[string][2]string{
		"demo": {"Greetings", "Hello"}, "demo-2": {"", "Good day"}, "demo-3": {"Questions", "And?"}, "demo-4": {}, "demo-5": {},
	}, read())

	_, err := a.logs.Delete(t.Context(), "demo-3")
	require.NoError(t, err)
	_, err = a.open(t, "demo").Branch(t.Context(), client.BranchOptions{At: "demo:0002", Name: "demo-3"})
	require.NoError(t, err)
	a.runs["demo-3"] = nil
	a.record(t, "demo-3", event.UserMessage{Content: "Another"})
	require.Equal(t, "Another", read()["demo-3"][1], "a new context with the name")
}

func TestBranchesAreBounded(t *testing.T) {
	a := newArchivist(t)
	a.begin(t, "demo", 0, "", event.SessionStarted{})
	for n := range 1100 {
		require.NoError(t, a.open(t, "demo").Fork(t.Context(), "demo:0001", fmt.Sprint("fork-", n)))
	}
	got, err := a.open(t, "fork-99").Branches(t.Context())
	require.NoError(t, err)
	require.True(t, got.Incomplete)
	require.Len(t, got.Contexts, 1000)
	require.Contains(t, got.Choices[0].Contexts, "fork-99", "the context itself is never missing")

	created, err := a.open(t, "demo").Branch(t.Context(), client.BranchOptions{At: "demo:0001"})
	require.NoError(t, err)
	require.Equal(t, "demo-2", created.ContextName)
}

func TestBranchesStayInTheirTenant(t *testing.T) {
	a := newArchivist(t)
	a.begin(t, "acme/demo", 0, "", event.SessionStarted{}, event.UserMessage{Content: "Hello"})
	namespace := client.New(client.Options{Temporal: &a.temporal, Archive: a.logs})
	acme, err := namespace.Tenant("acme")
	require.NoError(t, err)
	demo, err := acme.Open("demo")
	require.NoError(t, err)
	created, err := demo.Branch(t.Context(), client.BranchOptions{Before: "demo:0002"})
	require.NoError(t, err)
	require.Equal(t, client.Branched{ContextName: "demo-2", ForkedFrom: "demo:0001"}, created)
	require.Equal(t, "context:acme/demo-2", a.start.ID)
	got, err := demo.Branches(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"demo", "demo-2"}, []string{got.Contexts[0].ContextName, got.Contexts[1].ContextName})
	require.Equal(t, []client.Choice{{After: "demo:0001", Contexts: []string{"demo", "demo-2"}}}, got.Choices)

	whole, err := namespace.Open("acme/demo")
	require.NoError(t, err)
	created, err = whole.Branch(t.Context(), client.BranchOptions{Before: "demo:0002"})
	require.NoError(t, err)
	require.Equal(t, "acme/demo-3", created.ContextName)
	for _, name := range []string{"other/demo", "demo"} {
		_, err = whole.Branch(t.Context(), client.BranchOptions{Before: "demo:0002", Name: name})
		require.ErrorIs(t, err, client.ErrName)
	}
}

func TestForksOfForksAreBounded(t *testing.T) {
	a := newArchivist(t)
	a.begin(t, "fork-0", 0, "", event.SessionStarted{}, event.UserMessage{Content: "Hello"})
	for n := range 100 {
		name, at := fmt.Sprint("fork-", n), n+2
		next := fmt.Sprint("fork-", n+1)
		require.NoError(t, a.open(t, name).Fork(t.Context(), event.FormatID(name, at), next))
		after, behind := a.end(t, next)
		a.begin(t, next, after, behind, event.UserMessage{Content: "Hello"})
	}
	deepest := a.open(t, "fork-100")
	want := `at: fork-100 has 100 origins (at most 100; send to the context, or export and import it)`
	require.EqualError(t, deepest.Fork(t.Context(), "fork-100:0102", "next"), want)
	_, err := deepest.Branch(t.Context(), client.BranchOptions{At: "fork-100:0102"})
	require.EqualError(t, err, want)
	got, err := deepest.Branches(t.Context())
	require.NoError(t, err)
	require.Len(t, got.Contexts, 101, "no fork is registered")
}
