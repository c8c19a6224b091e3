package session

import (
	"context"
	"errors"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/seed-9ed7edd4/chronicle/blobs"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

// ErrOtherStore: the client has another blob store than the namespace.
var ErrOtherStore = blobs.ErrOtherStore

// checkStore returns ErrOtherStore when the workers of a namespace have recorded
// another blob store than the client's. It writes nothing. A namespace that does
// not say which store it has is no error.
func checkStore(ctx context.Context, temporal client.Client, namespace string, store *blobs.Store) error {
	described, err := temporal.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: namespace})
	bound := described.GetNamespaceInfo().GetData()[wire.MemoStore]
	if err != nil || bound == "" {
		return nil // others say what is wrong with the namespace
	}
	id, err := store.Known(ctx)
	if errors.Is(err, blobs.ErrAway) {
		return nil // it is needed later, if at all
	}
	if err == nil && id != bound {
		err = blobs.OtherStore("namespace "+namespace, bound, id)
	}
	return err
}
