package doctor

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
)

const (
	// maxStoreLatency: opening a context reads up to 64 objects at once, and a request waits up to 5 s
	// for an attachment.
	maxStoreLatency = time.Second
	// Unless a person deletes a context, workers delete objects only in probeFolder, so the probe needs no permission
	// that they lack.
	probeFolder = "cursors/"
)

// access writes, reads, lists and deletes a blob, and compares the store with that of the namespace.
func (d *Deployment) access(ctx context.Context) Result {
	if d.Store == nil {
		return skipped("no blob store is set (--blob-url or BLOB_URL)")
	}
	store, err := d.Store(ctx)
	if err != nil {
		return failure("correct --blob-url or BLOB_URL", "%s", text(err))
	}
	if d.IsClient {
		defer store.Close()
	}
	slowest, step, err := probe(ctx, store)
	if err != nil {
		return failure("grant this process the permission to read, write and list objects of the blob store, and to delete those below cursors/; "+
			"check that the store is reachable and has space", "cannot %s: %s", step, text(err))
	}
	id, err := store.ReadIdentity(ctx)
	const fix = "set --blob-url or BLOB_URL to the store of the workers"
	switch {
	case err != nil:
		return failure("check that the blob store is reachable", "%s", text(err))
	case d.storeID != "" && id == "":
		return failure(fix, "the blob store has no identity, but namespace %q uses store %s", d.Namespace, d.storeID)
	case d.storeID != "" && id != d.storeID:
		return failure(fix, "the blob store is %s, but namespace %q uses %s", id, d.Namespace, d.storeID)
	case slowest > maxStoreLatency:
		return warning("use a blob store near the workers", "%s takes %v, more than %v", step, latency(slowest), maxStoreLatency)
	}
	return ok("write, read, list and delete take at most %v", latency(slowest))
}

// probe returns the slowest step, or the one that failed. It deletes its blob if it can.
func probe(ctx context.Context, store *blobs.Store) (slowest time.Duration, at string, err error) {
	name, data := probeFolder+"doctor-"+rand.Text()+".json", []byte("{}")
	isDeleted := false
	defer func() {
		if !isDeleted {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			_ = store.Delete(ctx, name) // the error is that of an earlier step
		}
	}()
	steps := []struct {
		name string
		run  func() error
	}{
		{"write", func() error { return store.WriteOnce(ctx, name, data) }},
		{"read", func() error {
			got, err := store.Read(ctx, name)
			if err == nil && !bytes.Equal(got, data) {
				err = fmt.Errorf("blob %s does not contain what was written", name)
			}
			return err
		}},
		{"list", func() error { return isListed(ctx, store, name) }},
		{"delete", func() error {
			isDeleted = true
			return store.Delete(ctx, name)
		}},
	}
	for _, step := range steps {
		began := time.Now()
		if err := step.run(); err != nil {
			return 0, step.name, err
		}
		if took := time.Since(began); took > slowest {
			slowest, at = took, step.name
		}
	}
	return slowest, at, nil
}

func isListed(ctx context.Context, store *blobs.Store, want string) error {
	for name, err := range store.Names(ctx, want) {
		if err != nil || name == want {
			return err
		}
	}
	return fmt.Errorf("blob %s was written but is not listed", want)
}
