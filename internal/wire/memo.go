package wire

import (
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
)

// StoreOf returns the identity of the blob store in a workflow memo; "" for none, and for anything but a string,
// which no worker writes.
func StoreOf(memo *commonpb.Memo) string { return idIn(memo, MemoStore) }

// PreviousRunOf returns the run that [MemoPreviousRun] of a workflow memo names; "" for none.
func PreviousRunOf(memo *commonpb.Memo) string { return idIn(memo, MemoPreviousRun) }

// RootOf returns the context that [MemoRoot] of a workflow memo names; "" for a context that is no fork.
func RootOf(memo *commonpb.Memo) string { return idIn(memo, MemoRoot) }

// ForksOf returns the choice for forks that [MemoForks] of the memo of a deletion names.
func ForksOf(memo *commonpb.Memo) Forks { return Forks(idIn(memo, MemoForks)) }

func idIn(memo *commonpb.Memo, key string) string {
	var id string
	if err := converter.GetDefaultDataConverter().FromPayload(memo.GetFields()[key], &id); err != nil {
		return ""
	}
	return id
}
