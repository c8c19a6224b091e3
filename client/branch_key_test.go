package client_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	sdkclient "go.temporal.io/sdk/client"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

func newConversation(t *testing.T) *archivist {
	a := newArchivist(t)
	a.begin(t, "demo", 0, "", event.SessionStarted{}, event.UserMessage{Content: "Hello"}, event.AssistantMessage{Content: "Hi"})
	return a
}

func contextNames(t *testing.T, a *archivist) (names []string) {
	got, err := a.open(t, "demo").Branches(t.Context())
	require.NoError(t, err)
	for _, b := range got.Contexts {
		names = append(names, b.ContextName)
	}
	return names
}

func TestAKeyIdentifiesABranch(t *testing.T) {
	a := newConversation(t)
	hello := event.New(event.UserMessage{Content: "Good day"})
	o := client.BranchOptions{Before: "demo:0002", Events: []event.Event{hello}, Key: "a"}
	admissions := 0
	o.Admit = func() error { admissions++; return nil }
	created, err := a.open(t, "demo").Branch(t.Context(), o)
	require.NoError(t, err)
	require.Equal(t, "demo-2", created.ContextName)
	require.Equal(t, 1, admissions)
	o.Admit = func() error { return errors.New("no room") }
	again, err := a.open(t, "demo").Branch(t.Context(), o)
	require.NoError(t, err)
	require.Equal(t, created.ContextName, again.ContextName)
	require.Equal(t, created.Receipt.ClientEventIDs, again.Receipt.ClientEventIDs, "the context deduplicates the events")
	require.Len(t, a.updates, 2)

	for _, o := range []client.BranchOptions{{At: "demo:0002", Key: "new"}, {At: "demo:0002"}, {At: "demo:0002", Name: "mine"}} {
		o.Admit = func() error { return errors.New("no room") }
		_, err = a.open(t, "demo").Branch(t.Context(), o)
		require.ErrorContains(t, err, "no room")
	}
	o.Admit = nil
	other := o
	other.Events = []event.Event{event.New(event.UserMessage{Content: "Good evening"})}
	_, err = a.open(t, "demo").Branch(t.Context(), other)
	require.ErrorIs(t, err, client.ErrKeyReused)
	other = o
	other.Name = "mine"
	_, err = a.open(t, "demo").Branch(t.Context(), other)
	require.ErrorIs(t, err, client.ErrKeyReused)
	require.Equal(t, []string{"demo", "demo-2"}, contextNames(t, a))

	o.Key = "b"
	created, err = a.open(t, "demo").Branch(t.Context(), o)
	require.NoError(t, err)
	require.Equal(t, "demo-3", created.ContextName)
	require.NotEqual(t, created.Receipt.ClientEventIDs, again.Receipt.ClientEventIDs)
}

// The two points have different origins.
func TestAKeyOfAForkIsNotReused(t *testing.T) {
	a := newConversation(t)
	_, err := a.open(t, "demo").Branch(t.Context(), client.BranchOptions{At: "demo:0003", Name: "mine"})
	require.NoError(t, err)
	a.record(t, "mine", event.UserMessage{Content: "And?"})
	created, err := a.open(t, "mine").Branch(t.Context(), client.BranchOptions{At: "mine:0005", Key: "a"})
	require.NoError(t, err)
	require.Equal(t, "mine:0005", created.ForkedFrom)
	_, err = a.open(t, "mine").Branch(t.Context(), client.BranchOptions{At: "mine:0002", Key: "a"})
	require.ErrorIs(t, err, client.ErrKeyReused)
	created, err = a.open(t, "demo").Branch(t.Context(), client.BranchOptions{At: "demo:0002", Key: "a"})
	require.NoError(t, err, "of another context")
	require.Equal(t, "demo:0002", created.ForkedFrom)
}

func TestAnInterruptedBranchIsCompletedByItsRepetition(t *testing.T) {
	for name, o := range map[string]client.BranchOptions{
		"with a key":            {At: "demo:0002", Key: "a"},
		"with a name":           {At: "demo:0002", Name: "demo-2"},
		"with a key and a name": {At: "demo:0002", Key: "a", Name: "demo-2"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newConversation(t)
			a.err = errors.New("no connection")
			created, err := a.open(t, "demo").Branch(t.Context(), o)
			require.ErrorIs(t, err, a.err)
			require.Equal(t, "demo-2", created.ContextName, "it is registered")
			a.err = nil
			a.start = sdkclient.StartWorkflowOptions{}
			// In the meantime, the session of the origin continued in another run.
			a.record(t, "demo", event.UserMessage{Content: "Bye"})
			again, err := a.open(t, "demo").Branch(t.Context(), o)
			require.NoError(t, err)
			require.Equal(t, created, again)
			require.Equal(t, wire.WorkflowID("demo-2"), a.start.ID)
			require.Equal(t, []string{"demo", "demo-2"}, contextNames(t, a))
		})
	}
}

func TestTheNameOfAnInterruptedBranchIsNotBlocked(t *testing.T) {
	a := newConversation(t)
	a.err = errors.New("no connection")
	_, err := a.open(t, "demo").Branch(t.Context(), client.BranchOptions{At: "demo:0002", Name: "mine"})
	require.ErrorIs(t, err, a.err)
	a.err = nil
	_, err = a.open(t, "mine").Send(t.Context(), event.New(event.UserMessage{Content: "And?"}))
	require.NoError(t, err, "the next input starts its session")
	require.Len(t, a.log(t, "mine"), 4)

	_, err = a.open(t, "demo").Branch(t.Context(), client.BranchOptions{At: "demo:0003", Name: "mine"})
	require.ErrorIs(t, err, client.ErrExists)
	_, err = a.logs.Delete(t.Context(), "mine")
	require.NoError(t, err)
	created, err := a.open(t, "demo").Branch(t.Context(), client.BranchOptions{At: "demo:0003", Name: "mine"})
	require.NoError(t, err)
	require.Equal(t, "demo:0003", created.ForkedFrom)
}

// Two requests choose the same name at the same time: the first one has a claim, the second one registers.
func TestAKeyWhoseNameIsTakenClaimsAnother(t *testing.T) {
	a := newConversation(t)
	o := client.BranchOptions{At: "demo:0002", Key: "a"}
	before := a.bucket.Names()
	created, err := a.open(t, "demo").Branch(t.Context(), o)
	require.NoError(t, err)
	require.Equal(t, "demo-2", created.ContextName)
	isClaim := func(name string) bool { return strings.Contains(name, "/keys/") }
	for _, name := range a.bucket.Names() {
		if !isClaim(name) && !slices.Contains(before, name) {
			a.bucket.Set(name, nil) // the request was interrupted after its claim
		}
	}
	_, err = a.open(t, "demo").Branch(t.Context(), client.BranchOptions{At: "demo:0002", Name: "demo-2"})
	require.NoError(t, err)
	for range 2 {
		created, err = a.open(t, "demo").Branch(t.Context(), o)
		require.NoError(t, err)
		require.Equal(t, "demo-3", created.ContextName)
	}

	for _, name := range []string{"demo-2", "demo-3"} {
		_, err = a.logs.Delete(t.Context(), name)
		require.NoError(t, err)
	}
	claims := 0
	for _, name := range a.bucket.Names() {
		if isClaim(name) {
			claims++
		}
	}
	require.Equal(t, 1, claims, "a claim is deleted with its fork")
}

func TestABranchAfterTheNewestEventIsRejected(t *testing.T) {
	a := newConversation(t)
	for _, o := range []client.BranchOptions{{At: "demo:0004"}, {Before: "demo:0004"}, {Before: "demo:0005"}, {Regenerate: "demo:0004"}} {
		created, err := a.open(t, "demo").Branch(t.Context(), o)
		require.ErrorIs(t, err, client.ErrNoEvent)
		require.Regexp(t, `^read event demo:000\d: no such event$`, err.Error())
		require.Empty(t, created)
	}
	require.Equal(t, []string{"demo"}, contextNames(t, a))
}

// racing is a Temporal server that is asked by another request while it is asked for the second time whether demo-2 exists.
type racing struct {
	*archivist
	asked int
	other func()
}

func (f *racing) DescribeWorkflowExecution(ctx context.Context, id, run string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	if id == wire.WorkflowID("demo-2") {
		if f.asked++; f.asked == 2 {
			f.other()
		}
	}
	return f.archivist.DescribeWorkflowExecution(ctx, id, run)
}

func TestRequestsWithOneKeyAtTheSameTimeCreateOneBranch(t *testing.T) {
	a := newConversation(t)
	o := client.BranchOptions{At: "demo:0002", Key: "a"}
	f := &racing{archivist: a}
	f.other = func() {
		created, err := a.open(t, "demo").Branch(t.Context(), o)
		require.NoError(t, err)
		require.Equal(t, "demo-2", created.ContextName)
	}
	demo, err := client.New(client.Options{Temporal: f, Archive: a.logs}).Open("demo")
	require.NoError(t, err)
	created, err := demo.Branch(t.Context(), o)
	require.NoError(t, err)
	require.Equal(t, 2, f.asked)
	require.Equal(t, "demo-2", created.ContextName)
	require.Equal(t, []string{"demo", "demo-2"}, contextNames(t, a))
}
