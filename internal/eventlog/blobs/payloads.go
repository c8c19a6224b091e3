package blobs

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/seed-9ed7edd4/chronicle/internal/references"
)

// PayloadThreshold is the minimum size of a stored payload, in bytes. Smaller ones stay in the
// history, where the Temporal UI shows them.
const PayloadThreshold = 64 << 10

// ExternalStorage makes a Temporal client keep large payloads in a store; the history then contains
// references. All clients, workers and replayers of a namespace need it. With a nil store, nothing
// is stored, and each reference is an error that asks for a store.
//
//	options.ExternalStorage = blobs.ExternalStorage(store, folderOf)
//
// FolderOf returns the name of the [Folder] for the payloads of a workflow; nil: the root for all. Package eventlog has
// the one for contexts.
//
// The client resolves references in results and inputs, and [Store.Inline] those in raw histories.
func ExternalStorage(store *Store, folderOf func(workflowID string) string) converter.ExternalStorage {
	threshold := PayloadThreshold
	if store == nil {
		threshold = math.MaxInt
	}
	return converter.ExternalStorage{
		Drivers:              []converter.StorageDriver{payloadDriver{store, folderOf}},
		PayloadSizeThreshold: threshold,
	}
}

var errNoStore = errors.New("the payload is in a blob store, and this process has none (set --blob-url or BLOB_URL to the store of the workers, or use the gateway)")

// These names are in persisted references and must not change.
const (
	driverName  = "chronicle-blobs"
	claimRef    = "ref"
	claimStore  = "store"
	claimFolder = "folder" // absent: the root
)

const payloadTimeout = time.Minute // the SDK fetches without a timeout while a workflow task waits

// payloadDriver stores payloads by their hash, so retries store nothing twice.
type payloadDriver struct {
	store    *Store
	folderOf func(workflowID string) string // nil: the root for all
}

var _ converter.StorageDriver = payloadDriver{}

func (payloadDriver) Name() string { return driverName }
func (payloadDriver) Type() string { return driverName }

func (d payloadDriver) Store(ctx converter.StorageDriverStoreContext, payloads []*commonpb.Payload) ([]converter.StorageDriverClaim, error) {
	claims := make([]converter.StorageDriverClaim, len(payloads))
	folder := d.folder(ctx.Target)
	for i, payload := range payloads {
		data, err := proto.MarshalOptions{Deterministic: true}.Marshal(payload)
		if err != nil {
			return nil, err
		}
		err = ctx.GetLimiter().Permit(ctx.Context, payload, func() error {
			put, cancel := context.WithTimeout(ctx.Context, payloadTimeout)
			defer cancel()
			id, err := d.store.Identity(put)
			if err != nil {
				return err
			}
			ref, err := folder.Put(put, data)
			claims[i].ClaimData = map[string]string{claimRef: string(ref), claimStore: id}
			if folder.name != "" {
				claims[i].ClaimData[claimFolder] = folder.name
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return claims, nil
}

func (d payloadDriver) folder(target converter.StorageDriverTargetInfo) Folder {
	if w, ok := target.(converter.StorageDriverWorkflowInfo); ok && d.folderOf != nil {
		return d.store.Folder(d.folderOf(w.WorkflowID))
	}
	return d.store.Folder("")
}

func (d payloadDriver) Retrieve(ctx converter.StorageDriverRetrieveContext, claims []converter.StorageDriverClaim) ([]*commonpb.Payload, error) {
	if d.store == nil {
		return nil, errNoStore
	}
	payloads := make([]*commonpb.Payload, len(claims))
	for i, claim := range claims {
		err := ctx.GetLimiter().Permit(ctx.Context, claim, func() (err error) {
			payloads[i], err = d.store.payload(ctx.Context, claim.ClaimData)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return payloads, nil
}

// Inline resolves references to this store, for readers of raw histories.
func (s *Store) Inline(ctx context.Context, payloads *commonpb.Payloads) (*commonpb.Payloads, error) {
	inline := &commonpb.Payloads{Payloads: make([]*commonpb.Payload, len(payloads.GetPayloads()))}
	for i, payload := range payloads.GetPayloads() {
		inline.Payloads[i] = payload
		if !references.Is(payload) {
			continue
		}
		claim, err := claimOf(payload)
		if err != nil {
			return nil, err
		}
		if inline.Payloads[i], err = s.payload(ctx, claim); err != nil {
			return nil, err
		}
	}
	return inline, nil
}

// ErrReference is the error of a reference that is malformed, too large, or of another store or driver.
var ErrReference = errors.New("invalid reference to a payload")

// ErrTooLarge is the [ErrReference] of a payload over the limit.
var ErrTooLarge = fmt.Errorf("%w: it is too large", ErrReference)

// Payload returns the payload that a reference from outside refers to, at most limit bytes. It is in this folder, or the
// error is an [ErrReference], since anyone can name another one. Other errors are those of [Folder.Get].
func (f Folder) Payload(ctx context.Context, reference *commonpb.Payload, limit int64) (*commonpb.Payload, error) {
	claim, err := claimOf(reference)
	if err != nil {
		return nil, err
	}
	if claim[claimFolder] != f.name {
		return nil, fmt.Errorf("%w: it refers to another context", ErrReference)
	}
	if ref, err := ParseRef(claim[claimRef]); err == nil {
		size, err := f.Size(ctx, ref)
		if err == nil && size > limit {
			err = fmt.Errorf("%w: payload %s has %d bytes (at most %d)", ErrTooLarge, ref, size, limit)
		}
		if err != nil {
			return nil, err
		}
	}
	return f.store.payload(ctx, claim)
}

func claimOf(reference *commonpb.Payload) (map[string]string, error) {
	var ref sdkpb.ExternalStorageReference
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(reference.GetData(), &ref); err != nil {
		return nil, fmt.Errorf("%w: it is not JSON of an ExternalStorageReference", ErrReference)
	}
	if ref.GetDriverName() != driverName {
		return nil, fmt.Errorf("%w: the storage driver is %q (want %q)", ErrReference, ref.GetDriverName(), driverName)
	}
	return ref.GetClaimData(), nil
}

func (s *Store) payload(ctx context.Context, claim map[string]string) (*commonpb.Payload, error) {
	ctx, cancel := context.WithTimeout(ctx, payloadTimeout)
	defer cancel()
	ref, err := ParseRef(claim[claimRef])
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrReference, err)
	}
	id, err := s.Identity(ctx)
	if err != nil {
		return nil, err
	}
	if claim[claimStore] != id {
		return nil, fmt.Errorf("%w: %w", ErrReference, OtherStore("payload "+string(ref), claim[claimStore], id))
	}
	data, err := s.Folder(claim[claimFolder]).Get(ctx, ref)
	if err != nil {
		return nil, err
	}
	var payload commonpb.Payload
	if err := proto.Unmarshal(data, &payload); err != nil {
		return nil, fmt.Errorf("%w: blob %s is no payload", ErrReference, ref)
	}
	return &payload, nil
}
