package client_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	sdkclient "go.temporal.io/sdk/client"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// offerer runs the workflows that look for tools.
type offerer struct {
	temporal
	asked []any
}

func (f *offerer) ExecuteWorkflow(_ context.Context, _ sdkclient.StartWorkflowOptions, workflow any, args ...any) (sdkclient.WorkflowRun, error) {
	if workflow != wire.WorkflowOffer {
		panic(workflow)
	}
	f.asked = append(f.asked, args...)
	return offered{}, nil
}

type offered struct{ sdkclient.WorkflowRun }

func (offered) Get(_ context.Context, out any) error {
	*out.(*client.Offered) = client.Offered{Unmatched: []string{"x"}}
	return nil
}

// Workers do not resolve references in the inputs of workflows.
func TestTheLargestSettingOfToolsIsNoReference(t *testing.T) {
	var tools event.SetTools
	for n := range event.MaxTools / 2 {
		pattern := fmt.Sprint(n, strings.Repeat("x", event.MaxPatternBytes-3))
		tools.Tools = append(tools.Tools, event.Tool{Pattern: pattern})
		tools.Approve = append(tools.Approve, event.ApprovalRule{Tool: pattern})
	}
	for n := 0; ; n++ {
		more := tools
		more.Tools = append(more.Tools, event.Tool{Name: fmt.Sprint("ask_", n), Description: strings.Repeat("x", 1000)})
		if event.New(more).Validate() != nil {
			break
		}
		tools = more
	}
	f := &offerer{}
	c, err := client.New(client.Options{Temporal: f}).Open("demo")
	require.NoError(t, err)
	out, err := c.CheckTools(t.Context(), tools)
	require.NoError(t, err)
	require.Equal(t, []string{"x"}, out.Unmatched)
	data, err := json.Marshal(f.asked[0])
	require.NoError(t, err)
	require.Less(t, len(data), blobs.PayloadThreshold/2)
	asked := f.asked[0].(wire.Offer).Tools
	require.Equal(t, tools.Patterns(), asked.Patterns())

	out, err = c.CheckTools(t.Context(), event.SetTools{Tools: event.ToolList{{Name: "ask"}}})
	require.NoError(t, err)
	require.Empty(t, out)
	require.Len(t, f.asked, 1, "no worker is asked for the tools of clients")
}
