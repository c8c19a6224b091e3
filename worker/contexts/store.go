package contexts

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/api/namespace/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/seed-9ed7edd4/chronicle/blobs"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

// ErrStoreRefused: the namespace cannot remember its blob store.
var ErrStoreRefused = errors.New("the blob store is not recorded in the namespace")

// BindStore records in a namespace the identity of the blob store of its contexts,
// once. The error is blobs.ErrOtherStore when the namespace has another store, and
// ErrStoreRefused when recording is not allowed or not possible here.
func BindStore(ctx context.Context, c client.Client, namespaceName, id string) error {
	for {
		bound, err := BoundStore(ctx, c, namespaceName)
		if err != nil {
			return err
		}
		if bound == id {
			return nil
		}
		if bound != "" {
			return blobs.OtherStore("namespace "+namespaceName, bound, id)
		}
		_, err = c.WorkflowService().UpdateNamespace(ctx, &workflowservice.UpdateNamespaceRequest{
			Namespace:  namespaceName,
			UpdateInfo: &namespace.UpdateNamespaceInfo{Data: map[string]string{wire.MemoStore: id}},
		})
		// What is recorded is read again: another worker may have been faster.
		if err != nil {
			return storeError("update", namespaceName, err)
		}
	}
}

// BoundStore is the identity of the blob store that is recorded in a namespace; ""
// when there is none.
func BoundStore(ctx context.Context, c client.Client, namespaceName string) (string, error) {
	described, err := c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: namespaceName})
	if err != nil {
		return "", storeError("describe", namespaceName, err)
	}
	return described.GetNamespaceInfo().GetData()[wire.MemoStore], nil
}

// storeError tells what cannot be done here from what went wrong.
func storeError(verb, namespaceName string, err error) error {
	if errors.As(err, new(*serviceerror.PermissionDenied)) ||
		errors.As(err, new(*serviceerror.Unimplemented)) ||
		errors.As(err, new(*serviceerror.InvalidArgument)) {
		return fmt.Errorf("%w: %s namespace %s: %w", ErrStoreRefused, verb, namespaceName, err)
	}
	return fmt.Errorf("%s namespace %s: %w", verb, namespaceName, err)
}
