package blobs

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
)

// ErrOtherStore: what was asked for belongs to another blob store.
var ErrOtherStore = errors.New("another blob store (set --blob-url or BLOB_URL to the one of the workers)")

// identityName is where a store keeps its identity.
const identityName = "store.json"

type identity struct {
	Version int    `json:"version"`
	ID      string `json:"id"`
}

// Identity returns the id of the store, which is random and written once, by the
// first call for a store that has none.
func (s *Store) Identity(ctx context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.id != "" {
		return s.id, nil
	}
	data, err := s.Read(ctx, identityName)
	if errors.Is(err, ErrNotFound) {
		if data, err = json.Marshal(identity{1, rand.Text()}); err != nil {
			return "", err
		}
		if err = s.WriteOnce(ctx, identityName, data); errors.Is(err, ErrExists) {
			data, err = s.Read(ctx, identityName)
		}
	}
	if err != nil {
		return "", fmt.Errorf("identify the blob store: %w", err)
	}
	var found identity
	if err := json.Unmarshal(data, &found); err != nil || found.ID == "" {
		return "", fmt.Errorf("identify the blob store: blob %s %w: it has no id", identityName, ErrCorrupt)
	}
	s.id = found.ID
	return s.id, nil
}

// OtherStore is ErrOtherStore for an object of the store with the id want, when
// the store in use has the id got.
func OtherStore(object, want, got string) error {
	return fmt.Errorf("%s: it belongs to blob store %s, and this is %s: %w", object, want, got, ErrOtherStore)
}
