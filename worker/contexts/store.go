package contexts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.temporal.io/api/namespace/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/seed-9ed7edd4/chronicle/blobs"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

// ErrStoreRefused: the namespace cannot remember its blob store.
var ErrStoreRefused = errors.New("the blob store is not recorded in the namespace")

const (
	// claimPrefix begins the keys of the workers that are about to record a store.
	claimPrefix = wire.MemoStore + "/"
	// bindRetry is the pause before the data of a namespace is read again.
	bindRetry = 50 * time.Millisecond
)

// BindStore records in a namespace the identity of the blob store of its contexts,
// once. The error is blobs.ErrOtherStore when the namespace has another store, and
// ErrStoreRefused when recording is not allowed or not possible here.
//
// Workers with different stores may call it at the same time. Each adds a claim of
// its own first. The server applies the updates of a namespace one after the other
// and answers with the outcome, so exactly one of them sees no other claim. That one
// records its store, and the others wait for that. A worker that is killed in between
// leaves its claim: then workers with other stores fail until it is started again.
func BindStore(ctx context.Context, c client.Client, namespaceName, id string) error {
	isClaimed := false
	for {
		data, err := namespaceData(ctx, c, namespaceName)
		if err != nil {
			return err
		}
		if data[wire.MemoStore] == "" && !isClaimed {
			data, err = updateNamespace(ctx, c, namespaceName, claimPrefix+id, "claimed")
			isClaimed = err == nil
		}
		others := claims(data, id)
		if err == nil && data[wire.MemoStore] == "" && len(others) == 0 {
			data, err = updateNamespace(ctx, c, namespaceName, wire.MemoStore, id)
		}
		switch bound := data[wire.MemoStore]; {
		case errors.Is(err, ErrStoreRefused) || bound == id:
			return err
		case bound != "":
			return blobs.OtherStore("namespace "+namespaceName, bound, id)
		}
		// Another worker is about to record its store, or has updated the namespace at
		// the same moment, which is an error.
		select {
		case <-time.After(bindRetry):
		case <-ctx.Done():
			if err == nil && len(others) > 0 {
				err = fmt.Errorf("%w (start a worker with that store, or clear its claim with: "+
					"temporal operator namespace update -n %s --data %s%s=)",
					blobs.OtherStore("namespace "+namespaceName, others[0], id), namespaceName, claimPrefix, others[0])
			}
			return cmp.Or(err, ctx.Err())
		}
	}
}

// claims are the stores, other than that with an id, that workers are about to record.
func claims(data map[string]string, id string) (others []string) {
	for _, key := range slices.Sorted(maps.Keys(data)) {
		if other, isClaim := strings.CutPrefix(key, claimPrefix); isClaim && other != id && data[key] != "" {
			others = append(others, other)
		}
	}
	return others
}

// BoundStore is the identity of the blob store that is recorded in a namespace; ""
// when there is none.
func BoundStore(ctx context.Context, c client.Client, namespaceName string) (string, error) {
	data, err := namespaceData(ctx, c, namespaceName)
	return data[wire.MemoStore], err
}

func namespaceData(ctx context.Context, c client.Client, namespaceName string) (map[string]string, error) {
	described, err := c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: namespaceName})
	return described.GetNamespaceInfo().GetData(), storeError("describe", namespaceName, err)
}

// updateNamespace sets one key and returns all data of the namespace.
func updateNamespace(ctx context.Context, c client.Client, namespaceName, key, value string) (map[string]string, error) {
	updated, err := c.WorkflowService().UpdateNamespace(ctx, &workflowservice.UpdateNamespaceRequest{
		Namespace:  namespaceName,
		UpdateInfo: &namespace.UpdateNamespaceInfo{Data: map[string]string{key: value}},
	})
	return updated.GetNamespaceInfo().GetData(), storeError("update", namespaceName, err)
}

// storeError tells what cannot be done here from what went wrong.
func storeError(verb, namespaceName string, err error) error {
	if err == nil {
		return nil
	}
	if errors.As(err, new(*serviceerror.PermissionDenied)) ||
		errors.As(err, new(*serviceerror.Unimplemented)) ||
		errors.As(err, new(*serviceerror.InvalidArgument)) {
		return fmt.Errorf("%w: %s namespace %s: %w", ErrStoreRefused, verb, namespaceName, err)
	}
	return fmt.Errorf("%s namespace %s: %w", verb, namespaceName, err)
}
