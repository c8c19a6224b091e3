package client_test

import (
	"context"
	"strings"
	"sync/atomic"

	enumspb "go.temporal.io/api/enums/v1"
	querypb "go.temporal.io/api/query/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	sdkclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// temporal is a scripted Temporal client. Calls without an implementation panic.
type temporal struct {
	sdkclient.Client
	err   error
	known bool   // there is a closed run
	ended string // id of the newest run, which has ended; "": the next input starts none
	// run describes the newest run; nil: see known.
	run *workflowservice.DescribeWorkflowExecutionResponse
	// described counts calls of DescribeWorkflowExecution.
	described int64
	signals   []signal
	// update responds to updates; nil: there is no worker.
	update   func(sdkclient.UpdateWorkflowOptions) (wire.Appended, error)
	updates  []sdkclient.UpdateWorkflowOptions
	start    sdkclient.StartWorkflowOptions // options of the newest start
	pages    []*workflowservice.ListWorkflowExecutionsResponse
	queries  []string
	state    wire.State
	noAnswer bool // to queries
	// terminated means that the newest run was terminated.
	terminated bool
	// schedules responds to operations on schedules; nil: unexpected.
	schedules *schedules
}

type signal struct {
	workflowID, name, input string
	options                 sdkclient.StartWorkflowOptions
}

func (f *temporal) SignalWithStartWorkflow(_ context.Context, workflowID, name string, input any,
	options sdkclient.StartWorkflowOptions, workflow any, _ ...any) (sdkclient.WorkflowRun, error) {
	if workflow != wire.WorkflowType {
		panic(workflow)
	}
	if err := f.reused(options); err != nil {
		return nil, err
	}
	f.signals = append(f.signals, signal{workflowID, name, string(input.(converter.RawValue).Payload().GetData()), options})
	return signaled{}, f.err
}

// reused returns the error for options that do not follow an ended run.
func (f *temporal) reused(options sdkclient.StartWorkflowOptions) error {
	if f.ended == "" || options.WorkflowIDReusePolicy != enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE {
		return nil
	}
	return serviceerror.NewWorkflowExecutionAlreadyStarted("ended", "", f.ended)
}

// signaled is the run that received a signal.
type signaled struct{ sdkclient.WorkflowRun }

func (signaled) GetRunID() string { return "run-1" }

func (f *temporal) SignalWorkflow(_ context.Context, workflowID, runID, name string, input any) error {
	payload, err := converter.GetDefaultDataConverter().ToPayload(input)
	if err != nil {
		return err
	}
	f.signals = append(f.signals, signal{workflowID: workflowID + runID, name: name, input: string(payload.GetData())})
	return f.err
}

func (f *temporal) NewWithStartWorkflowOperation(options sdkclient.StartWorkflowOptions, _ any, _ ...any) sdkclient.WithStartWorkflowOperation {
	f.start = options
	return nil
}

func (f *temporal) UpdateWithStartWorkflow(_ context.Context, options sdkclient.UpdateWithStartWorkflowOptions) (sdkclient.WorkflowUpdateHandle, error) {
	if err := f.reused(f.start); err != nil {
		return nil, err
	}
	f.updates = append(f.updates, options.UpdateOptions)
	switch {
	case f.err != nil:
		return nil, f.err
	case f.update == nil:
		return nil, serviceerror.NewDeadlineExceeded("no worker")
	}
	appended, err := f.update(options.UpdateOptions)
	return &updateHandle{appended: appended, err: err}, nil
}

type updateHandle struct {
	sdkclient.WorkflowUpdateHandle
	appended wire.Appended
	err      error
}

func (h *updateHandle) Get(_ context.Context, result any) error {
	*result.(*wire.Appended) = h.appended
	return h.err
}

func (f *temporal) ExecuteWorkflow(_ context.Context, options sdkclient.StartWorkflowOptions, workflow any, _ ...any) (sdkclient.WorkflowRun, error) {
	if workflow != wire.WorkflowType {
		panic(workflow)
	}
	f.start = options
	return signaled{}, f.err
}

func (f *temporal) DescribeWorkflowExecution(_ context.Context, workflowID, _ string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	if strings.HasPrefix(workflowID, wire.DeletionID("")) {
		return nil, serviceerror.NewNotFound("no deletion runs")
	}
	atomic.AddInt64(&f.described, 1)
	if f.run != nil {
		return f.run, nil
	}
	if f.known {
		return &workflowservice.DescribeWorkflowExecutionResponse{}, nil
	}
	return nil, serviceerror.NewNotFound("no such workflow")
}

func (f *temporal) QueryWorkflowWithOptions(ctx context.Context, request *sdkclient.QueryWorkflowWithOptionsRequest) (*sdkclient.QueryWorkflowWithOptionsResponse, error) {
	f.queries = append(f.queries, request.WorkflowID+request.RunID+"/"+request.QueryType)
	if f.noAnswer {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if f.err != nil {
		return nil, f.err
	}
	if f.terminated && request.QueryRejectCondition == enumspb.QUERY_REJECT_CONDITION_NOT_COMPLETED_CLEANLY {
		return &sdkclient.QueryWorkflowWithOptionsResponse{QueryRejected: &querypb.QueryRejected{Status: enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED}}, nil
	}
	payloads, err := converter.GetDefaultDataConverter().ToPayloads(f.state)
	return &sdkclient.QueryWorkflowWithOptionsResponse{QueryResult: sdkclient.NewValue(payloads)}, err
}

func (f *temporal) ListWorkflow(_ context.Context, request *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	f.queries = append(f.queries, request.GetQuery()+string(request.GetNextPageToken()))
	if f.err != nil {
		return nil, f.err
	}
	page := f.pages[0]
	f.pages = f.pages[1:]
	return page, nil
}

func (f *temporal) CheckHealth(context.Context, *sdkclient.CheckHealthRequest) (*sdkclient.CheckHealthResponse, error) {
	return &sdkclient.CheckHealthResponse{}, f.err
}
