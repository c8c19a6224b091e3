package client_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	sdkclient "go.temporal.io/sdk/client"
	"pgregory.net/rapid"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs/blobstest"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

func tenantOf(t require.TestingT, c *client.Client, tenant string) *client.Client {
	of, err := c.Tenant(tenant)
	require.NoError(t, err)
	return of
}

func TestAClientOfATenantOpensOnlyItsContexts(t *testing.T) {
	f := &temporal{update: func(sdkclient.UpdateWorkflowOptions) (wire.Appended, error) { return wire.Appended{}, nil }}
	c := client.New(client.Options{Temporal: f})
	rapid.Check(t, func(t *rapid.T) {
		name := eventtest.ContextName().Draw(t, "name")
		tenant, local := event.CutTenant(name)
		demo, err := tenantOf(t, c, tenant).Open(local)
		require.NoError(t, err)
		require.Equal(t, local, demo.Name())
		_, err = demo.Send(context.Background(), event.New(event.UserMessage{Content: "Hello"}))
		require.NoError(t, err)
		require.Equal(t, wire.WorkflowID(name), f.start.ID)
	})
	for _, tenant := range []string{"", "acme"} {
		of := tenantOf(t, c, tenant)
		for _, name := range []string{"acme/demo", "other/demo", "/demo", "../demo", "acme/"} {
			_, err := of.Open(name)
			require.ErrorIs(t, err, client.ErrName, name)
			require.ErrorContains(t, err, "a name has 1-128 of", name)
		}
		_, err := of.Tenant("other")
		require.ErrorContains(t, err, "tenant other: the client is that of tenant")
	}
	for _, tenant := range []string{"_", "a/b", "ac me", ".."} {
		_, err := c.Tenant(tenant)
		require.ErrorContains(t, err, "a tenant has 1-64 of")
	}
}

func TestAClientOfATenantListsOnlyItsContexts(t *testing.T) {
	all := []string{"demo", "acme/demo", "acme/other", "acme.b/demo", "acme"}
	for tenant, want := range map[string]struct {
		filter string
		names  []string
	}{
		"":     {"WorkflowType = 'Context'", []string{"demo", "acme"}},
		"acme": {"WorkflowType = 'Context' AND WorkflowId STARTS_WITH 'context:acme/'", []string{"demo", "other"}},
	} {
		f := &temporal{schedules: &schedules{}}
		page := &workflowservice.ListWorkflowExecutionsResponse{}
		c := client.New(client.Options{Temporal: f})
		for _, name := range all {
			page.Executions = append(page.Executions, &workflowpb.WorkflowExecutionInfo{
				Execution: &commonpb.WorkflowExecution{WorkflowId: wire.WorkflowID(name)}, Status: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING,
			})
			of, err := c.Open(name)
			require.NoError(t, err)
			_, err = of.Schedule(t.Context(), client.Schedule{Cron: "@daily", Message: event.UserMessage{Content: "Hello"}})
			require.NoError(t, err)
		}
		f.pages = []*workflowservice.ListWorkflowExecutionsResponse{page}
		var names, scheduled []string
		for s, err := range tenantOf(t, c, tenant).List(t.Context(), "") {
			require.NoError(t, err)
			names = append(names, s.ContextName)
		}
		for s, err := range tenantOf(t, c, tenant).Schedules(t.Context(), "") {
			require.NoError(t, err)
			scheduled = append(scheduled, s.ContextName)
		}
		require.Equal(t, want.names, names)
		require.Equal(t, want.names, scheduled)
		require.Equal(t, []string{want.filter}, f.queries)
	}
}

func TestALogDoesNotMentionItsTenant(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		log := eventtest.Log("demo").Draw(r, "log")
		logs := archive.New(blobstest.New(t).Store)
		at := rapid.IntRange(1, len(log)).Draw(r, "at")
		var read [2]string
		var problems [2][]client.Problem // blobs of random logs are missing
		for i, tenant := range []string{"", "acme/"} {
			put(r, logs, tenant+"demo", log)
			c := archived(r, &temporal{}, logs, tenant+"demo")
			require.NoError(r, c.Fork(t.Context(), id(at), tenant+"copy"))
			for _, c := range []*client.Context{c, archived(r, &temporal{}, logs, tenant+"copy")} {
				for e, err := range c.Events(t.Context(), "") {
					require.NoError(r, err)
					data, err := e.MarshalJSON()
					require.NoError(r, err)
					read[i] += string(data) + "\n"
				}
			}
			verified, err := c.Verify(t.Context())
			require.NoError(r, err)
			problems[i] = verified.Problems
		}
		require.Equal(r, read[0], read[1])
		require.Equal(r, problems[0], problems[1])
	})
}

func TestAForkStaysInItsTenant(t *testing.T) {
	logs := archive.New(blobstest.New(t).Store)
	put(t, logs, "acme/demo", numbered(1))
	for _, as := range []string{"copy", "other/copy"} {
		f := &temporal{}
		err := archived(t, f, logs, "acme/demo").Fork(t.Context(), id(1), as)
		require.ErrorIs(t, err, client.ErrName)
		require.EqualError(t, err, "fork as context "+as+": a fork stays in the tenant of its origin (want a name like acme/copy)")
		require.Empty(t, f.start.ID, "no run is started")
	}
	f := &temporal{}
	demo, err := tenantOf(t, client.New(client.Options{Temporal: f, Archive: logs}), "acme").Open("demo")
	require.NoError(t, err)
	require.NoError(t, demo.Fork(t.Context(), id(1), "copy"))
	require.Equal(t, "context:acme/copy", f.start.ID)
}

func TestErrorsOfAClientOfATenantDoNotNameIt(t *testing.T) {
	logs := archive.New(blobstest.New(t).Store)
	put(t, logs, "acme/demo", numbered(2))
	f := &temporal{}
	demo, err := tenantOf(t, client.New(client.Options{Temporal: f, Archive: logs}), "acme").Open("demo")
	require.NoError(t, err)
	_, err = demo.Branch(t.Context(), client.BranchOptions{At: "other:0001"})
	require.EqualError(t, err, `at: "other:0001" is not an event of context demo (want an id like demo:0001)`)
	require.NoError(t, demo.Fork(t.Context(), id(1), "copy"))
	_, err = demo.Branch(t.Context(), client.BranchOptions{At: id(2), Name: "copy"})
	require.EqualError(t, err, "fork as context copy: "+client.ErrExists.Error())
	f.err = serviceerror.NewUnavailable("down")
	_, err = demo.State(t.Context())
	require.ErrorContains(t, err, "get the state of context demo: ")
}
