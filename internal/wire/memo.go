package wire

import (
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
)

// StoreOf returns the identity of the blob store in a workflow memo; "" for none, and for anything but a string,
// which no worker writes.
func StoreOf(memo *commonpb.Memo) string {
	var id string
	if err := converter.GetDefaultDataConverter().FromPayload(memo.GetFields()[MemoStore], &id); err != nil {
		return ""
	}
	return id
}
