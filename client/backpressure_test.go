package client_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	sdkclient "go.temporal.io/sdk/client"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs/blobstest"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

func running(length, size int64, isWaiting bool) *workflowservice.DescribeWorkflowExecutionResponse {
	d := &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{
		Status: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, HistoryLength: length, HistorySizeBytes: size,
	}}
	if isWaiting {
		d.PendingWorkflowTask = &workflowpb.PendingWorkflowTaskInfo{}
	}
	return d
}

func TestSendReturnsErrFullBeforeTheServerTerminatesTheRun(t *testing.T) {
	const mib = 1 << 20
	for name, test := range map[string]struct {
		run  *workflowservice.DescribeWorkflowExecutionResponse
		want string // "": no error
	}{
		"no context yet":                         {nil, ""},
		"a short history":                        {running(3, 1000, true), ""},
		"almost the maximum of waiting signals":  {running(8_999, mib, true), ""},
		"the maximum of waiting signals":         {running(9_200, mib, true), "send to context demo: full until a worker runs: 9,200 of 10,000 signals (start a worker, or wait for the busy ones, then send again)"},
		"almost the maximum of waiting bytes":    {running(300, 20*mib-1000, true), ""},
		"the maximum of waiting bytes":           {running(300, 20*mib, true), "send to context demo: full until a worker runs: 20.0 of 50 MiB of history, the rest of which is reserved for a worker (start a worker, or wait for the busy ones, then send again)"},
		"a long history without waiting signals": {running(9_200, 21*mib, false), ""},
		"the maximum length":                     {running(50_000, 21*mib, false), "full until a worker runs: 50,000 of 51,200 history events"},
		"the maximum size":                       {running(9_200, 45*mib, false), "full until a worker runs: 45.0 of 50 MiB of history"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &temporal{run: test.run}
			sent, err := open(t, f).Send(t.Context(), event.New(event.UserMessage{Content: "Hello"}))
			if test.want == "" {
				require.NoError(t, err)
				require.Len(t, f.signals, 1)
				return
			}
			require.ErrorIs(t, err, client.ErrFull)
			require.ErrorContains(t, err, test.want)
			require.Empty(t, f.signals)
			require.Len(t, sent.ClientEventIDs, 1, "the ids for another attempt")
		})
	}
	t.Run("after a closed run, the next one is empty", func(t *testing.T) {
		closed := running(9_500, 40<<20, false)
		closed.WorkflowExecutionInfo.Status = enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED
		f := &temporal{run: closed}
		_, err := open(t, f).Send(t.Context(), event.New(event.UserMessage{Content: "Hello"}))
		require.NoError(t, err)
		require.Len(t, f.signals, 1)
	})
	t.Run("the signal limit of the server", func(t *testing.T) {
		f := &temporal{err: serviceerror.NewInvalidArgument("exceeded workflow execution limit for signal events")}
		_, err := open(t, f).Send(t.Context(), event.New(event.UserMessage{Content: "Hello"}))
		require.ErrorIs(t, err, client.ErrFull)
		require.ErrorContains(t, err, "10,000 of 10,000 signals")
	})
}

func TestTheHistoryIsCheckedOnceForManySignals(t *testing.T) {
	f := &temporal{run: running(3, 1000, true)}
	c, err := client.New(client.Options{Temporal: f, Archive: archive.New(blobstest.New(t).Store)}).Open("demo")
	require.NoError(t, err)
	large := event.New(event.UserMessage{Content: strings.Repeat("x", wire.MaxAppendBytes)})
	const signals = 80
	for range signals {
		_, err := c.Send(t.Context(), large)
		require.NoError(t, err)
	}
	require.Len(t, f.signals, signals)
	require.Less(t, f.described, int64(signals/2))

	f.run = running(8_950, 1000, true)
	other, err := client.New(client.Options{Temporal: f, Archive: archive.New(blobstest.New(t).Store)}).Open("demo")
	require.NoError(t, err)
	f.described = 0
	for range 3 {
		_, err := other.Send(t.Context(), large)
		require.NoError(t, err)
	}
	require.EqualValues(t, 1+3, f.described, "one check per signal near the limit, and one of the store")
}

// silent receives signals and responds to nothing else.
type silent struct {
	temporal
	mu      sync.Mutex
	signals int
}

func (f *silent) DescribeWorkflowExecution(ctx context.Context, _, _ string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (f *silent) NewWithStartWorkflowOperation(sdkclient.StartWorkflowOptions, any, ...any) sdkclient.WithStartWorkflowOperation {
	return nil
}

func (f *silent) UpdateWithStartWorkflow(ctx context.Context, _ sdkclient.UpdateWithStartWorkflowOptions) (sdkclient.WorkflowUpdateHandle, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (f *silent) SignalWithStartWorkflow(context.Context, string, string, any, sdkclient.StartWorkflowOptions, any, ...any) (sdkclient.WorkflowRun, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.signals++
	return signaled{}, nil
}

// slow responds late, and never to updates.
type slow struct {
	silent
	checks int
}

func (f *slow) DescribeWorkflowExecution(context.Context, string, string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	f.mu.Lock()
	f.checks++
	f.mu.Unlock()
	time.Sleep(100 * time.Millisecond) // bubble time
	return running(3, 1000, true), nil
}

// Otherwise a crowd that sends to one context would keep Temporal busy with checks.
func TestConcurrentSignalsShareAHistoryCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &slow{}
		c, err := client.New(client.Options{Temporal: f}).Open("demo")
		require.NoError(t, err)
		const sends = 300
		var wg sync.WaitGroup
		for range sends {
			wg.Go(func() {
				_, err := c.Send(t.Context(), event.New(event.UserMessage{Content: "Hello"}))
				assert.NoError(t, err)
			})
		}
		wg.Wait()
		require.Equal(t, sends, f.signals)
		require.Less(t, f.checks, 10)
	})
}

func TestAFewSignalsAreSentUncheckedOnASilentConnection(t *testing.T) {
	f := &silent{}
	c, err := client.New(client.Options{Temporal: f}).Open("demo")
	require.NoError(t, err)
	const sends = 14
	errs := make([]error, sends)
	var wg sync.WaitGroup
	for i := range sends {
		wg.Go(func() { _, errs[i] = c.Send(t.Context(), event.New(event.UserMessage{Content: "Hello"})) })
	}
	wg.Wait()
	refused := 0
	for _, err := range errs {
		if err != nil {
			require.ErrorIs(t, err, client.ErrUnreachable)
			refused++
		}
	}
	require.Equal(t, 10, f.signals, "1% of the space for concurrent clients")
	require.Equal(t, sends-10, refused)
}
