package main

import (
	"context"
	"encoding/json"
	"strings"
	"sync"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	sdkclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/internal/references"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

const missing = "sha256/0000000000000000000000000000000000000000000000000000000000000000"

func claimed(data string) converter.RawValue {
	return converter.NewRawValue(references.Active([]byte(data)))
}

// claim refers to a payload of the user's context.
func (u *user) claim(ref, store string) converter.RawValue {
	return claimed(`{"driverName":"chronicle-blobs","claimData":{"ref":"` + ref + `","store":"` + store + `","folder":"` + archive.BlobFolder(u.name()) + `"}}`)
}

// signalReference sends a reference that cannot be read, or not as input.
func signalReference(ctx context.Context, u *user) error {
	large, err := u.large(ctx)
	if err != nil {
		return err
	}
	store := gjson(large.GetData(), "store")
	input := pick[any](u.rand, u.claim(missing, "nope"), u.claim(missing, store), u.claim("../../etc/passwd", store), u.claim("sha256/x", store),
		claimed(`{"driverName":"s3","claimData":{}}`), claimed(`{"driverName":`), claimed(``), claimed(`[]`), claimed(`{"driverName":"chronicle-blobs","claimData":null}`),
		payload("json/external-storage-reference", []byte(`{"driver_name":"gone"}`)), claimed(strings.Repeat("x", 400<<10)))
	return u.signalWithStart(ctx, pick(u.rand, wire.SignalEvent, wire.SignalEvent, wire.SignalEvent, wire.SignalInterrupt, wire.SignalClose, "typo"), input)
}

// copyReference sends copies of the reference to a large note. All but the first have a used client event id.
func copyReference(ctx context.Context, u *user) error {
	large, err := u.ownLarge(ctx)
	if err != nil {
		return err
	}
	for range pick(u.rand, 1, 5, 15) {
		if err := u.signalWithStart(ctx, wire.SignalEvent, converter.NewRawValue(proto.Clone(large).(*commonpb.Payload))); err != nil {
			return err
		}
	}
	return nil
}

// ownLarge returns a reference to the large note in the user's context: those of other contexts are rejected.
func (u *user) ownLarge(ctx context.Context) (*commonpb.Payload, error) {
	large, err := u.large(ctx)
	if err != nil {
		return nil, err
	}
	store, err := blobs.OpenExisting(ctx, u.BlobURL(), sdkclient.DefaultNamespace)
	if err != nil {
		return nil, err
	}
	defer store.Close()
	ref, err := blobs.ParseRef(gjson(large.GetData(), "ref"))
	if err != nil {
		return nil, err
	}
	data, err := archive.New(store).Blobs(largeNote).Get(ctx, ref)
	if err == nil {
		_, err = archive.New(store).Blobs(u.name()).Put(ctx, data)
	}
	return u.claim(string(ref), gjson(large.GetData(), "store")).Payload(), err
}

// largeNote is the context that the large note is sent to.
const largeNote = "soak-note"

// note is the reference to a note of 12 MB.
type note struct {
	mu        sync.Mutex
	reference *commonpb.Payload
}

const noteBytes = 12_000_000

func (s *soak) large(ctx context.Context) (*commonpb.Payload, error) {
	s.note.mu.Lock()
	defer s.note.mu.Unlock()
	if s.note.reference != nil {
		return s.note.reference, nil
	}
	c, err := s.Contexts.Open(largeNote)
	if err != nil {
		return nil, err
	}
	if _, err := c.Send(ctx, event.New(event.Note{Kind: event.NoteSystem, Content: strings.Repeat("large ", noteBytes/6)})); err != nil {
		return nil, err
	}
	// The client of the rig resolves no references in histories.
	history := s.Temporal.GetWorkflowHistory(ctx, wire.WorkflowID(c.Name()), "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for history.HasNext() {
		h, err := history.Next()
		if err != nil {
			return nil, err
		}
		for _, p := range h.GetWorkflowExecutionSignaledEventAttributes().GetInput().GetPayloads() {
			if references.Is(p) {
				s.note.reference = p
				return p, nil
			}
		}
	}
	return nil, errNothing
}

// gjson returns a string of the claim data of a reference.
func gjson(data []byte, name string) string {
	var reference struct{ ClaimData map[string]string }
	_ = json.Unmarshal(data, &reference) // "" is another hostile value
	return reference.ClaimData[name]
}
