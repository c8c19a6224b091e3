package wire

import (
	"fmt"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
)

// StoreOf returns the identity of the blob store in a workflow memo; "" for none.
func StoreOf(memo *commonpb.Memo) (id string, err error) {
	payload := memo.GetFields()[MemoStore]
	if payload == nil {
		return "", nil
	}
	if err := converter.GetDefaultDataConverter().FromPayload(payload, &id); err != nil {
		return "", fmt.Errorf("read the memo %s: %w", MemoStore, err)
	}
	return id, nil
}
