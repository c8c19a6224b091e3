package main_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/doctor"
	main "github.com/seed-9ed7edd4/chronicle/worker"
)

// A client with the role write can replace the rules of a context, or fork it from before they were set.
func TestApprovalsThatTheOperatorRequires(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(root, "notes.txt"), []byte("buy apples"), 0o600))
	worker := dev(t, t.TempDir(), "--tool-files-root", root, "--approve", "read_*")
	facts := worker.ready()
	require.Equal(t, "read_*", facts["approve"])
	c, err := client.Dial(t.Context(), client.Config{Address: facts["temporal"], NATSURL: facts["nats"], NATSAuth: natsAuth(facts), BlobURL: facts["blobs"]})
	require.NoError(t, err)
	defer c.Shutdown()
	demo, err := c.Open("demo")
	require.NoError(t, err)
	_, err = demo.Send(t.Context(), event.New(event.SetTools{Tools: event.ToolList{{Pattern: "*"}}, Approve: event.ApprovalRules{{Tool: "list_files"}}}))
	require.NoError(t, err)
	later := event.New(event.SetTools{Tools: event.ToolList{{Pattern: "*"}}})
	later.ClientEventID = "later"
	var begun client.Receipt
	for begun.EventIDs == nil { // the worker has not responded in time
		begun, err = demo.Send(t.Context(), later)
		require.NoError(t, err)
	}
	forked, err := demo.Branch(t.Context(), client.BranchOptions{Before: begun.EventIDs[0]})
	require.NoError(t, err)
	fork, err := c.Open(forked.ContextName)
	require.NoError(t, err)
	for _, of := range []*client.Context{demo, fork} {
		_, err := of.Send(t.Context(), event.New(event.SetTools{Tools: event.ToolList{{Pattern: "*"}}}),
			event.New(event.UserMessage{Content: `/call read_file {"path":"notes.txt"}`}))
		require.NoError(t, err)
		for e, err := range of.Follow(t.Context(), client.FollowOptions{}) {
			require.NoError(t, err)
			require.NotEqual(t, event.TagToolResult, e.Tag())
			if e.Tag() == event.TagApprovalRequested {
				break
			}
		}
	}
	_, findings := diagnose(t, facts)
	require.Equal(t, []any{doctor.OK, "read_*"}, []any{findings["tools.approve"].Severity, findings["tools.approve"].Measured})
	worker.signal(syscall.SIGTERM)
	require.Zero(t, worker.exit(), worker.stderr.String())

	worker = dev(t, t.TempDir(), "--approve", "fetch")
	require.Equal(t, 2, worker.exit())
	require.Contains(t, worker.stderr.String(), `--approve "fetch": matches no tool of this worker (it has search_log, read_result)`)
}

type offers func(pattern string) ([]activities.Tool, error)

func (f offers) Offer(_ context.Context, r activities.OfferRequest) ([]activities.Tool, error) {
	return f(r.Config.Tools[0].Pattern)
}

func (offers) Call(context.Context, activities.ToolCallRequest) activities.ToolCallResult {
	panic("not called")
}

func TestTheDoctorNamesRulesWithoutATool(t *testing.T) {
	tools := offers(func(pattern string) ([]activities.Tool, error) {
		switch {
		case strings.HasPrefix(pattern, "mcp:down/"):
			return nil, errors.New("the server exited")
		case strings.HasPrefix(pattern, "mcp:"):
			return nil, nil
		}
		return []activities.Tool{{}}, nil
	})
	require.Equal(t, doctor.Result{
		Severity: doctor.Warning, Measured: "fetch, mcp:files/wriet; no tool matches mcp:files/wriet", Fix: "correct --approve, unless the tools appear later",
	}, main.CheckApprovals(t.Context(), []string{"fetch", "mcp:files/wriet"}, tools))
	require.Equal(t, doctor.Result{Severity: doctor.Error, Measured: "the server exited", Fix: "correct --approve"},
		main.CheckApprovals(t.Context(), []string{"fetch", "mcp:down/*"}, tools))
}
