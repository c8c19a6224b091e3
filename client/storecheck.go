package client

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/golang/groupcache/lru"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	sdkclient "go.temporal.io/sdk/client"

	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// Workers could not read references to a store other than theirs. Before it changes a context, the
// client therefore compares its store with that in the namespace data or in the memo of the context.

// storeChecks caches comparisons by context name; "" is the namespace. Recorded stores never
// change, so only an undecided comparison expires, after unknownTTL.
type storeChecks struct {
	mu     sync.Mutex
	checks *lru.Cache // of storeCheck
}

func newStoreChecks() storeChecks { return storeChecks{checks: lru.New(maxChecks)} }

type storeCheck struct {
	at     time.Time
	isSame bool // false if a store was unknown
}

const (
	unknownTTL = time.Second
	maxChecks  = 10_000
)

func (s *storeChecks) get(contextName string) (isCached, isSame bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	value, ok := s.checks.Get(contextName)
	check, _ := value.(storeCheck)
	return ok && (check.isSame || time.Since(check.at) < unknownTTL), check.isSame
}

func (s *storeChecks) add(contextName string, isSame bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.checks.Add(contextName, storeCheck{time.Now(), isSame})
}

func (s *storeChecks) expire(contextName string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if value, ok := s.checks.Get(contextName); ok && !value.(storeCheck).isSame {
		s.checks.Remove(contextName)
	}
}

// checkNamespace ignores a namespace that is not readable or has no store.
func (c *Client) checkNamespace(ctx context.Context) error {
	if isCached, _ := c.storeChecks.get(""); isCached || c.options.Namespace == "" || c.options.Archive == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, temporalTimeout)
	defer cancel()
	described, err := c.options.Temporal.WorkflowService().DescribeNamespace(ctx,
		&workflowservice.DescribeNamespaceRequest{Namespace: c.options.Namespace})
	if err != nil {
		c.storeChecks.add("", false)
		return nil // other calls report the error
	}
	isSame, err := c.hasStore(ctx, "namespace "+c.options.Namespace, described.GetNamespaceInfo().GetData()[wire.MemoStore])
	if err == nil {
		c.storeChecks.add("", isSame)
	}
	return err
}

func (c *Context) isChecked() bool {
	isCached, _ := c.client.storeChecks.get(c.name)
	return isCached || c.hasClientStore()
}

func (c *Context) hasClientStore() bool {
	_, isSame := c.client.storeChecks.get(c.name)
	_, isSameNamespace := c.client.storeChecks.get("")
	return isSame || isSameNamespace
}

// checkStore writes nothing to the store. A client without a store sends no references, so it needs
// no check.
func (c *Context) checkStore(ctx context.Context, operation string) error {
	if c.client.options.Archive == nil || c.isChecked() {
		return nil
	}
	check, cancel := context.WithTimeout(ctx, temporalTimeout)
	defer cancel()
	if err := c.client.checkNamespace(check); err != nil || c.isChecked() {
		return err
	}
	d, err := c.client.options.Temporal.DescribeWorkflowExecution(check, wire.WorkflowID(c.name), "")
	if err != nil && !errors.As(err, new(*serviceerror.NotFound)) {
		return c.explain(ctx, operation, err, ErrBusy)
	}
	return c.compareStore(check, operation, d.GetWorkflowExecutionInfo())
}

func (c *Context) compareStore(ctx context.Context, operation string, run *workflowpb.WorkflowExecutionInfo) error {
	isSame, err := c.client.hasStore(ctx, operation+" context "+c.name, wire.StoreOf(run.GetMemo()))
	if err == nil {
		c.client.storeChecks.add(c.name, isSame)
	}
	return err
}

// hasStore returns false without an error if the recorded store is unknown or the client's store is
// unreachable.
func (c *Client) hasStore(ctx context.Context, object, want string) (isSame bool, err error) {
	if want == "" {
		return false, nil
	}
	got, err := c.options.Archive.Store().ReadIdentity(ctx)
	switch {
	case errors.Is(err, blobs.ErrUnavailable):
		return false, nil
	case err == nil && got != want:
		err = blobs.OtherStore(object, want, got)
	}
	return err == nil, err
}

// A worker whose store differs from that in the memo does not open the run.
func (c *Context) startOptions(storeID string) sdkclient.StartWorkflowOptions {
	options := sdkclient.StartWorkflowOptions{ID: wire.WorkflowID(c.name), TaskQueue: c.client.options.TaskQueue, Memo: map[string]any{}}
	if storeID != "" {
		options.Memo[wire.MemoStore] = storeID
	}
	return options
}

// starting calls start again if the newest run has ended, with options that start another run. Its memo names the one
// before: the worker that opens it records what the run before accepted and did not record.
func (c *Context) starting(ctx context.Context, start func(sdkclient.StartWorkflowOptions) error) error {
	options := c.startOptions(c.storeID(ctx))
	options.WorkflowIDReusePolicy = enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE
	err := start(options)
	var ended *serviceerror.WorkflowExecutionAlreadyStarted
	if !errors.As(err, &ended) {
		return err
	}
	options.WorkflowIDReusePolicy = enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE
	options.Memo[wire.MemoPreviousRun] = ended.RunId
	return start(options)
}

// storeID is "" if it is unconfirmed that client and context share a store.
func (c *Context) storeID(ctx context.Context) string {
	if c.client.options.Archive == nil || !c.hasClientStore() {
		return ""
	}
	id, _ := c.client.options.Archive.Store().ReadIdentity(ctx) // cached since the comparison
	return id
}
