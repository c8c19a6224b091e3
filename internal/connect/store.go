package connect

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
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// ErrStoreRefused reports that the namespace cannot record its blob store.
var ErrStoreRefused = errors.New("the blob store is not recorded in the namespace")

const (
	claimPrefix       = wire.MemoStore + "/"
	bindRetryInterval = 50 * time.Millisecond // between reads of the namespace data
)

// IdentifyStore returns the identity of the store of a worker. It writes none into the store if the namespace has
// another one; the error is then blobs.ErrOtherStore.
func IdentifyStore(ctx context.Context, c client.Client, namespaceName string, store *blobs.Store) (id string, err error) {
	if id, err = store.ReadIdentity(ctx); err != nil || id != "" {
		return id, err
	}
	bound, err := BoundStore(ctx, c, namespaceName)
	if err != nil && !errors.Is(err, ErrStoreRefused) {
		return "", err
	}
	if bound != "" {
		return "", blobs.OtherStore("namespace "+namespaceName, bound, "")
	}
	return store.Identity(ctx)
}

// BindStore records the identity of the blob store of a namespace, once. The error is
// blobs.ErrOtherStore if the namespace has another store, and ErrStoreRefused if the server does
// not allow or support recording.
//
// Each worker first adds a claim of its store. The server serializes updates and responds with the
// result, so only workers with the first claimed store see no other claim. They record the store, and
// the others wait. If they are killed in between and another store is claimed, all workers fail until
// one of the claims is cleared; the error contains the command.
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
		// Another worker is recording its store, or its concurrent update made this one fail.
		select {
		case <-time.After(bindRetryInterval):
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

func claims(data map[string]string, id string) (others []string) {
	for _, key := range slices.Sorted(maps.Keys(data)) {
		if other, isClaim := strings.CutPrefix(key, claimPrefix); isClaim && other != id && data[key] != "" {
			others = append(others, other)
		}
	}
	return others
}

// BoundStore returns the identity that BindStore recorded; "" if there is none.
func BoundStore(ctx context.Context, c client.Client, namespaceName string) (string, error) {
	data, err := namespaceData(ctx, c, namespaceName)
	return data[wire.MemoStore], err
}

func namespaceData(ctx context.Context, c client.Client, namespaceName string) (map[string]string, error) {
	described, err := c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: namespaceName})
	return described.GetNamespaceInfo().GetData(), storeError("describe", namespaceName, err)
}

func updateNamespace(ctx context.Context, c client.Client, namespaceName, key, value string) (map[string]string, error) {
	updated, err := c.WorkflowService().UpdateNamespace(ctx, &workflowservice.UpdateNamespaceRequest{
		Namespace:  namespaceName,
		UpdateInfo: &namespace.UpdateNamespaceInfo{Data: map[string]string{key: value}},
	})
	return updated.GetNamespaceInfo().GetData(), storeError("update", namespaceName, err)
}

func storeError(verb, namespaceName string, err error) error {
	if err == nil {
		return nil
	}
	if isRefused(err) {
		return fmt.Errorf("%w: %s namespace %s: %w", ErrStoreRefused, verb, namespaceName, err)
	}
	return fmt.Errorf("%s namespace %s: %w", verb, namespaceName, err)
}
