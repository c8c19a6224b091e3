package blobs

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
)

// ErrOtherStore reports an object that belongs to another blob store.
var ErrOtherStore = errors.New("wrong blob store (set --blob-url or BLOB_URL to the store of the workers)")

const identityName = "store.json"

type identity struct {
	Version int    `json:"version"`
	ID      string `json:"id"`
}

// Identity returns the id of the store, which the first call creates at random. It never changes.
func (s *Store) Identity(ctx context.Context) (string, error) {
	id, err := s.ReadIdentity(ctx)
	if err != nil || id != "" {
		return id, err
	}
	data, err := json.Marshal(identity{1, rand.Text()})
	if err == nil {
		err = s.WriteOnce(ctx, identityName, data)
	}
	if err != nil && !errors.Is(err, ErrExists) {
		return "", fmt.Errorf("identify the blob store: %w", err)
	}
	return s.ReadIdentity(ctx)
}

// ReadIdentity returns the id of the store, or "" if it has none yet.
func (s *Store) ReadIdentity(ctx context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.id != "" {
		return s.id, nil
	}
	data, err := s.Read(ctx, identityName)
	if errors.Is(err, ErrNotFound) {
		return "", nil
	}
	var found identity
	if err == nil && (json.Unmarshal(data, &found) != nil || found.ID == "") {
		err = fmt.Errorf("blob %s %w: it has no id", identityName, ErrCorrupt)
	}
	if err != nil {
		return "", fmt.Errorf("identify the blob store: %w", err)
	}
	s.id = found.ID
	return s.id, nil
}

func (s *Store) hasIdentity() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.id != ""
}

// OtherStore returns an [ErrOtherStore]. Want is the id of the object's store, got the id of this
// process's store; "" if it has none.
func OtherStore(object, want, got string) error {
	if got == "" {
		got = "one without contexts"
	}
	return fmt.Errorf("%s: it belongs to blob store %s, but this process uses %s: %w", object, want, got, ErrOtherStore)
}
