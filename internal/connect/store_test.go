package connect_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/namespace/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"

	"github.com/seed-9ed7edd4/chronicle/internal/connect"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// cluster is a fake Temporal server with one namespace, whose data workers read and write. Like
// the server, it serializes updates, rejects an update that conflicts with a concurrent one,
// and responds with the result. It panics on any other call.
type cluster struct {
	workflowservice.WorkflowServiceClient

	mu   sync.Mutex
	data map[string]string
	// readonly rejects updates.
	readonly bool
	// conflicts is the number of updates to reject as conflicts.
	conflicts int
	// before is called before each call, with its number.
	before func(call int)
	calls  int
}

// temporal is a client of a cluster.
type temporal struct {
	client.Client
	cluster *cluster
}

func (c temporal) WorkflowService() workflowservice.WorkflowServiceClient { return c.cluster }

func (s *cluster) enter() (leave func()) {
	s.mu.Lock()
	s.calls++
	call, before := s.calls, s.before
	s.mu.Unlock()
	if before != nil {
		before(call)
	}
	s.mu.Lock()
	return s.mu.Unlock
}

func (s *cluster) info() *namespace.NamespaceInfo {
	data := map[string]string{}
	for key, value := range s.data {
		data[key] = value
	}
	return &namespace.NamespaceInfo{Data: data}
}

func (s *cluster) DescribeNamespace(context.Context, *workflowservice.DescribeNamespaceRequest, ...grpc.CallOption) (*workflowservice.DescribeNamespaceResponse, error) {
	defer s.enter()()
	return &workflowservice.DescribeNamespaceResponse{NamespaceInfo: s.info()}, nil
}

func (s *cluster) UpdateNamespace(_ context.Context, in *workflowservice.UpdateNamespaceRequest, _ ...grpc.CallOption) (*workflowservice.UpdateNamespaceResponse, error) {
	defer s.enter()()
	if s.readonly {
		return nil, serviceerror.NewPermissionDenied("not yours", "")
	}
	if s.conflicts > 0 {
		s.conflicts--
		return nil, errors.New("conditional update error: expect: 3, actual: 4")
	}
	if s.data == nil {
		s.data = map[string]string{}
	}
	for key, value := range in.GetUpdateInfo().GetData() {
		s.data[key] = value
	}
	return &workflowservice.UpdateNamespaceResponse{NamespaceInfo: s.info()}, nil
}

// bind calls BindStore concurrently for workers with these stores and returns their results.
func bind(ctx context.Context, s *cluster, ids ...string) []error {
	errs := make([]error, len(ids))
	var wg sync.WaitGroup
	for i, id := range ids {
		wg.Go(func() { errs[i] = connect.BindStore(ctx, temporal{cluster: s}, "default", id) })
	}
	wg.Wait()
	return errs
}

// requireOneWinner requires that all workers with one of the stores succeed and that the errors
// of the others name both stores.
func requireOneWinner(t *testing.T, s *cluster, ids []string, errs []error) {
	t.Helper()
	bound, err := connect.BoundStore(t.Context(), temporal{cluster: s}, "default")
	require.NoError(t, err)
	require.Contains(t, ids, bound)
	for i, err := range errs {
		if ids[i] == bound {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, blobs.ErrOtherStore)
		require.ErrorContains(t, err, fmt.Sprintf("namespace default: it belongs to blob store %s, but this process uses %s", bound, ids[i]))
	}
}

func TestOneStoreOfConcurrentWorkersWins(t *testing.T) {
	ids := []string{"A", "B", "B", "C"}
	for range 20 {
		s := &cluster{conflicts: 1}
		requireOneWinner(t, s, ids, bind(t.Context(), s, ids...))
	}
}

// TestOneStoreWinsInEveryInterleaving pauses one worker before each of its calls
// while another one binds its store or waits for the first.
func TestOneStoreWinsInEveryInterleaving(t *testing.T) {
	for pause := 1; pause <= 3; pause++ {
		t.Run(fmt.Sprintf("before call %d", pause), func(t *testing.T) {
			s := &cluster{}
			second := make(chan error, 1)
			s.before = func(call int) {
				if call != pause {
					return
				}
				// The first worker continues when the second has returned or polls.
				again := make(chan struct{})
				s.mu.Lock()
				s.before = func(call int) {
					if call == pause+3 {
						close(again)
					}
				}
				s.mu.Unlock()
				go func() { second <- connect.BindStore(t.Context(), temporal{cluster: s}, "default", "B") }()
				select {
				case err := <-second:
					second <- err
				case <-again:
				}
			}
			first := connect.BindStore(t.Context(), temporal{cluster: s}, "default", "A")
			requireOneWinner(t, s, []string{"A", "B"}, []error{first, <-second})
		})
	}
}

func TestRemainingClaimRejectsOtherStores(t *testing.T) {
	s := &cluster{data: map[string]string{wire.MemoStore + "/A": "claimed"}}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	err := connect.BindStore(ctx, temporal{cluster: s}, "default", "B")
	require.ErrorIs(t, err, blobs.ErrOtherStore)
	require.ErrorContains(t, err, "it belongs to blob store A, but this process uses B: ")
	require.ErrorContains(t, err, "temporal operator namespace update -n default --data chronicle-store/A=")
	require.Empty(t, s.data[wire.MemoStore])

	s.data = map[string]string{wire.MemoStore + "/A": "claimed", wire.MemoStore + "/B": ""}
	require.NoError(t, connect.BindStore(t.Context(), temporal{cluster: s}, "default", "A"))
}

func TestBindStoreWithoutPermission(t *testing.T) {
	require.ErrorIs(t, connect.BindStore(t.Context(), temporal{cluster: &cluster{readonly: true}}, "default", "A"), connect.ErrStoreRefused)
	bound := &cluster{readonly: true, data: map[string]string{wire.MemoStore: "A"}}
	require.NoError(t, connect.BindStore(t.Context(), temporal{cluster: bound}, "default", "A"))
	require.ErrorIs(t, connect.BindStore(t.Context(), temporal{cluster: bound}, "default", "B"), blobs.ErrOtherStore)
}
