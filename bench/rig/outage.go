package rig

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// OwnsTemporal reports whether the Temporal server is the rig's own, which
// RestartTemporal needs.
func (r *Rig) OwnsTemporal() bool { return r.server != nil }

// RestartTemporal ends the Temporal server, with SIGKILL or else SIGTERM, and
// after a while starts it again with the same database and port. It is not safe for
// concurrent use, as little as the other methods of this file.
func (r *Rig) RestartTemporal(ctx context.Context, kill bool, down time.Duration) error {
	at, err := url.Parse("tcp://" + r.places.Temporal)
	if err != nil {
		return err
	}
	port, err := strconv.Atoi(at.Port())
	if err != nil {
		return err
	}
	if kill {
		if err := syscall.Kill(r.server.PID(), syscall.SIGKILL); err != nil {
			return fmt.Errorf("kill the temporal server: %w", err)
		}
		<-r.server.Done()
	}
	_ = r.server.Stop()  // one that does not end in time is killed
	_ = pause(ctx, down) // in any case it is started again
	if err := r.startsServer(context.WithoutCancel(ctx), port); err != nil {
		return fmt.Errorf("start the temporal server again: %w", err)
	}
	return nil
}

// RestartNATS ends the NATS server and after a while starts it again on the same
// port.
func (r *Rig) RestartNATS(ctx context.Context, down time.Duration) error {
	at, err := url.Parse(r.places.NATS)
	if err != nil {
		return err
	}
	again := r.places
	if again.NATSPort, err = strconv.Atoi(at.Port()); err != nil {
		return err
	}
	r.nats.stop()
	_ = pause(ctx, down) // in any case it is started again
	p, err := start(context.WithoutCancel(ctx), roleNATS, again, r.Notes)
	if err != nil {
		return fmt.Errorf("start the nats server again: %w", err)
	}
	r.nats = p
	return nil
}

// The blob store is a folder below a symbolic link, so that an outage can take it
// away at once from all processes: the link leads through a file then, and every
// operation fails with ENOTDIR.
const (
	blobLink   = "blobs"
	blobFolder = "folder"
	notAFolder = "away"
)

func (r *Rig) prepareBlobs() error {
	r.places.Blobs = "file://" + filepath.ToSlash(filepath.Join(r.dir, blobLink, "store"))
	return errors.Join(
		os.Mkdir(filepath.Join(r.dir, blobFolder), 0o700),
		os.WriteFile(filepath.Join(r.dir, notAFolder), nil, 0o600),
		r.linkBlobs(blobFolder),
	)
}

// linkBlobs lets the link lead elsewhere, without a moment in which there is none.
func (r *Rig) linkBlobs(target string) error {
	next := filepath.Join(r.dir, blobLink+".next")
	if err := os.Symlink(target, next); err != nil {
		return err
	}
	return os.Rename(next, filepath.Join(r.dir, blobLink))
}

// TakeBlobsAway makes every operation on the blob store fail for a while.
func (r *Rig) TakeBlobsAway(ctx context.Context, down time.Duration) error {
	if err := r.linkBlobs(notAFolder); err != nil {
		return fmt.Errorf("take the blob store away: %w", err)
	}
	_ = pause(ctx, down) // in any case it is given back
	if err := r.linkBlobs(blobFolder); err != nil {
		return fmt.Errorf("give the blob store back: %w", err)
	}
	return nil
}
