package doctor

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	namespacepb "go.temporal.io/api/namespace/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	sdkclient "go.temporal.io/sdk/client"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// server is a Temporal server in memory. Calls without an implementation panic.
type server struct {
	sdkclient.Client
	version   string
	namespace string
	retention time.Duration
	storeID   string
	pollers   map[enums.TaskQueueType][]*taskqueuepb.PollerInfo
	now       time.Time // start time of workflows
	started   []sdkclient.StartWorkflowOptions
	deleted   []string // workflow ids
	counts    int      // of workflows; from the second one, lists show those that were started
	stale     []string // workflow ids that lists keep, because they were deleted before lists showed them
	// onDescribe is called when a workflow is described, which then takes until its context is done. Nil:
	// it responds at once.
	onDescribe func()
	denied     error // of GetSystemInfo
}

func newServer() *server {
	worker := poller("1@a", "0.2.0")
	return &server{
		version: "1.29.1", namespace: "default", retention: 30 * 24 * time.Hour, storeID: "store-1", now: time.Now(),
		pollers: map[enums.TaskQueueType][]*taskqueuepb.PollerInfo{
			enums.TASK_QUEUE_TYPE_WORKFLOW: {worker}, enums.TASK_QUEUE_TYPE_ACTIVITY: {worker},
		},
	}
}

func poller(identity, buildID string) *taskqueuepb.PollerInfo {
	p := &taskqueuepb.PollerInfo{Identity: identity, LastAccessTime: timestamppb.Now()}
	//lint:ignore SA1019 as in versionOf
	p.WorkerVersionCapabilities = &commonpb.WorkerVersionCapabilities{BuildId: buildID}
	return p
}

func (s *server) deployment() *Deployment {
	return &Deployment{
		Address: "temporal:7233", Namespace: "default", TaskQueue: "contexts",
		Dial: func(context.Context) (sdkclient.Client, error) { return s, nil },
	}
}

func (s *server) Close()                                                 {}
func (s *server) WorkflowService() workflowservice.WorkflowServiceClient { return service{server: s} }

func (s *server) DescribeTaskQueue(_ context.Context, _ string, kind enums.TaskQueueType) (*workflowservice.DescribeTaskQueueResponse, error) {
	return &workflowservice.DescribeTaskQueueResponse{Pollers: s.pollers[kind]}, nil
}

func (s *server) ExecuteWorkflow(_ context.Context, options sdkclient.StartWorkflowOptions, _ any, _ ...any) (sdkclient.WorkflowRun, error) {
	s.started = append(s.started, options)
	return run{id: options.ID}, nil
}

func (s *server) CountWorkflow(_ context.Context, r *workflowservice.CountWorkflowExecutionsRequest) (*workflowservice.CountWorkflowExecutionsResponse, error) {
	newest := s.started[len(s.started)-1]
	if want := fmt.Sprintf("WorkflowId = '%s'", newest.ID); r.GetQuery() != want {
		return nil, fmt.Errorf("unexpected query %q", r.GetQuery())
	}
	s.counts++
	return &workflowservice.CountWorkflowExecutionsResponse{Count: int64(s.counts / 2)}, nil
}

func (s *server) DescribeWorkflowExecution(ctx context.Context, _, _ string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	if s.onDescribe != nil {
		s.onDescribe()
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &workflowservice.DescribeWorkflowExecutionResponse{
		WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{StartTime: timestamppb.New(s.now)},
	}, nil
}

type run struct {
	sdkclient.WorkflowRun
	id string
}

func (r run) GetID() string  { return r.id }
func (run) GetRunID() string { return "run" }

type service struct {
	workflowservice.WorkflowServiceClient
	server *server
}

func (s service) GetSystemInfo(context.Context, *workflowservice.GetSystemInfoRequest, ...grpc.CallOption) (*workflowservice.GetSystemInfoResponse, error) {
	return &workflowservice.GetSystemInfoResponse{ServerVersion: s.server.version}, s.server.denied
}

func (s service) DescribeNamespace(_ context.Context, r *workflowservice.DescribeNamespaceRequest, _ ...grpc.CallOption) (*workflowservice.DescribeNamespaceResponse, error) {
	if r.GetNamespace() != s.server.namespace {
		return nil, serviceerror.NewNamespaceNotFound(r.GetNamespace())
	}
	return &workflowservice.DescribeNamespaceResponse{
		NamespaceInfo: &namespacepb.NamespaceInfo{Data: map[string]string{wire.MemoStore: s.server.storeID}},
		Config:        &namespacepb.NamespaceConfig{WorkflowExecutionRetentionTtl: durationpb.New(s.server.retention)},
	}, nil
}

func (s service) DeleteWorkflowExecution(_ context.Context, r *workflowservice.DeleteWorkflowExecutionRequest, _ ...grpc.CallOption) (*workflowservice.DeleteWorkflowExecutionResponse, error) {
	if s.server.counts < 2 {
		s.server.stale = append(s.server.stale, r.GetWorkflowExecution().GetWorkflowId())
	}
	s.server.deleted = append(s.server.deleted, r.GetWorkflowExecution().GetWorkflowId())
	return &workflowservice.DeleteWorkflowExecutionResponse{}, nil
}

// check returns a check of a deployment by its name.
func check(d *Deployment, name string) Check {
	all := d.Checks()
	return all[slices.IndexFunc(all, func(c Check) bool { return c.Name == name })]
}

// examine runs checks and returns the findings by check.
func examine(t *testing.T, checks ...Check) map[string]Finding {
	t.Helper()
	found := map[string]Finding{}
	for f := range Run(t.Context(), checks) {
		found[f.Check] = f
		require.NotEmpty(t, f.Measured, f.Check)
		require.NotEmpty(t, f.Why, f.Check)
		require.Equal(t, f.IsProblem(), f.Fix != "", "%s: a problem has a fix, and nothing else has", f.Check)
	}
	return found
}

func requireFinding(t *testing.T, f Finding, want Severity, measured string) {
	t.Helper()
	require.Equal(t, want, f.Severity, f.Measured)
	require.Contains(t, f.Measured, measured)
}
