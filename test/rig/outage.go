package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/seed-9ed7edd4/chronicle/internal/pause"
)

// RestartNATS restarts the NATS server after the given time, on the same port.
func (r *Rig) RestartNATS(ctx context.Context, down time.Duration) error {
	port, err := portOf(r.at.nats)
	if err != nil {
		return err
	}
	r.nats.Kill()
	pause.For(ctx, down) // restart even if ctx is done
	restarted, err := (&role{Name: "nats", Port: port}).launch(context.WithoutCancel(ctx), nil)
	if err != nil {
		return fmt.Errorf("restart the nats server: %w", err)
	}
	r.nats = restarted
	return nil
}

// The blob store is a folder behind a symbolic link. An outage points the link at a file, so that every operation
// of every process fails with ENOTDIR.
const (
	blobLink      = "blobs"
	blobDirectory = "directory"
	notADirectory = "file"
)

func (r *Rig) prepareBlobs() error {
	r.at.blobs = "file://" + filepath.ToSlash(filepath.Join(r.dir, blobLink, "store"))
	return errors.Join(
		os.MkdirAll(filepath.Join(r.dir, blobDirectory, "store"), 0o700), // the clients start before the workers
		os.WriteFile(filepath.Join(r.dir, notADirectory), nil, 0o600),
		r.linkBlobs(blobDirectory),
	)
}

// BlobURL is the URL of the blob store.
func (r *Rig) BlobURL() string { return r.at.blobs }

func (r *Rig) linkBlobs(target string) error {
	next := filepath.Join(r.dir, blobLink+".next")
	if err := os.Symlink(target, next); err != nil {
		return err
	}
	return os.Rename(next, filepath.Join(r.dir, blobLink))
}

// DisconnectBlobs makes the blob store unavailable for the given time.
func (r *Rig) DisconnectBlobs(ctx context.Context, down time.Duration) error {
	if err := r.linkBlobs(notADirectory); err != nil {
		return fmt.Errorf("disconnect the blob store: %w", err)
	}
	pause.For(ctx, down) // restore even if ctx is done
	if err := r.linkBlobs(blobDirectory); err != nil {
		return fmt.Errorf("reconnect the blob store: %w", err)
	}
	return nil
}
