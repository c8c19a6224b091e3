package client

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	sdkclient "go.temporal.io/sdk/client"

	"github.com/seed-9ed7edd4/chronicle/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

// ErrOtherStore: the client has another blob store than the workers.
var ErrOtherStore = blobs.ErrOtherStore

// A client with another store than the workers would write references that they
// cannot read. Before it changes anything, it compares its store with the one that
// is recorded in the namespace. Where none is recorded, or the client may not read
// it, it compares its store with the one in the memo of the context, which is there
// once a worker has opened it.

// storeChecks caches comparisons by context name; "" is the namespace. A namespace and
// a context keep their store, so only a comparison that lacked one of the stores is
// repeated, after unknownTTL.
type storeChecks struct {
	mu   sync.Mutex
	done map[string]storeCheck
}

// storeCheck is a comparison. Unless isSame is set, one of the stores was unknown.
type storeCheck struct {
	at     time.Time
	isSame bool
}

const (
	unknownTTL = time.Second
	maxChecks  = 10_000
)

// find returns whether a comparison is cached, and whether it found the same store.
func (s *storeChecks) find(contextName string) (isCached, isSame bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	check, ok := s.done[contextName]
	return ok && (check.isSame || time.Since(check.at) < unknownTTL), check.isSame
}

func (s *storeChecks) add(contextName string, isSame bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done == nil || len(s.done) >= maxChecks {
		s.done = map[string]storeCheck{}
	}
	s.done[contextName] = storeCheck{time.Now(), isSame}
}

// opened drops a comparison that lacked the store of a context: a worker has opened the
// context since.
func (s *storeChecks) opened(contextName string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.done[contextName].isSame {
		delete(s.done, contextName)
	}
}

// checkNamespace returns ErrOtherStore when the namespace has another blob store than
// the client. A namespace that cannot be read, or has none, is no error.
func (c *Client) checkNamespace(ctx context.Context) error {
	if isCached, _ := c.stores.find(""); isCached || c.options.Namespace == "" || c.options.Archive == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, temporalTimeout)
	defer cancel()
	described, err := c.options.Temporal.WorkflowService().DescribeNamespace(ctx,
		&workflowservice.DescribeNamespaceRequest{Namespace: c.options.Namespace})
	if err != nil {
		c.stores.add("", false)
		return nil // other calls report the error
	}
	isSame, err := c.hasStore(ctx, "namespace "+c.options.Namespace, described.GetNamespaceInfo().GetData()[wire.MemoStore])
	if err == nil {
		c.stores.add("", isSame)
	}
	return err
}

// isCompared reports whether the store of the context is that of the client, or was
// not known a moment ago.
func (c *Context) isCompared() bool {
	isCached, _ := c.client.stores.find(c.name)
	return isCached || c.hasClientStore()
}

// hasClientStore reports whether the store of the context was found to be that of the
// client.
func (c *Context) hasClientStore() bool {
	_, isSame := c.client.stores.find(c.name)
	_, all := c.client.stores.find("")
	return isSame || all
}

// checkStore returns ErrOtherStore when the context has another blob store than the
// client. It writes nothing. A client without a store sends no references.
func (c *Context) checkStore(ctx context.Context, verb string) error {
	if c.client.options.Archive == nil || c.isCompared() {
		return nil
	}
	look, cancel := context.WithTimeout(ctx, temporalTimeout)
	defer cancel()
	if err := c.client.checkNamespace(look); err != nil || c.isCompared() {
		return err
	}
	d, err := c.client.options.Temporal.DescribeWorkflowExecution(look, wire.WorkflowID(c.name), "")
	if err != nil && !errors.As(err, new(*serviceerror.NotFound)) {
		return c.explain(ctx, verb, err, ErrUnreachable)
	}
	return c.compareStore(look, verb, d.GetWorkflowExecutionInfo())
}

// compareStore is checkStore for the newest run of the context.
func (c *Context) compareStore(ctx context.Context, verb string, run *workflowpb.WorkflowExecutionInfo) error {
	want, err := wire.StoreOf(run.GetMemo())
	if err != nil {
		return c.explain(ctx, verb, err, ErrUnreachable)
	}
	isSame, err := c.client.hasStore(ctx, verb+" context "+c.name, want)
	if err == nil {
		c.client.stores.add(c.name, isSame)
	}
	return err
}

// hasStore compares the store of the client with the one that an object belongs to.
// It returns false without an error when one of them is not known. While the store
// of the client is away, no reference can be written to it.
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

// startOptions are those with which the client starts a run. The memo makes workers
// with another store than the context's fail, before they open the run.
func (c *Context) startOptions(storeID string) sdkclient.StartWorkflowOptions {
	options := sdkclient.StartWorkflowOptions{ID: wire.WorkflowID(c.name), TaskQueue: c.client.options.TaskQueue}
	if storeID != "" {
		options.Memo = map[string]any{wire.MemoStore: storeID}
	}
	return options
}

// storeID is the identity of the store of the context, if it was found to be that of
// the client; else "".
func (c *Context) storeID(ctx context.Context) string {
	if c.client.options.Archive == nil || !c.hasClientStore() {
		return ""
	}
	id, _ := c.client.options.Archive.Store().ReadIdentity(ctx) // was read for the comparison
	return id
}
