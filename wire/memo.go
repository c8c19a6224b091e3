package wire

import (
	"fmt"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
)

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
