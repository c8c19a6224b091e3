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

	"github.com/seed-9ed7edd4/chronicle/internal/pause"
)

// OwnsTemporal reports whether the rig started the Temporal server. RestartTemporal
// requires it.
func (r *Rig) OwnsTemporal() bool { return r.server != nil }

// RestartTemporal stops the Temporal server with SIGKILL or SIGTERM and restarts it after
// the given time, with the same database and port. The methods in this file are not safe
// for concurrent use.
func (r *Rig) RestartTemporal(ctx context.Context, kill bool, down time.Duration) error {
	at, err := url.Parse("tcp://" + r.addresses.Temporal)
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
	_ = r.server.Stop()  // kills it after a timeout
	pause.For(ctx, down) // restart even if ctx is done
	if err := r.startDevServer(context.WithoutCancel(ctx), port); err != nil {
		return fmt.Errorf("restart the temporal server: %w", err)
	}
	return nil
}

// RestartNATS restarts the NATS server after the given time, on the same port.
func (r *Rig) RestartNATS(ctx context.Context, down time.Duration) error {
	at, err := url.Parse(r.addresses.NATS)
	if err != nil {
		return err
	}
	restarted := r.addresses
	if restarted.NATSPort, err = strconv.Atoi(at.Port()); err != nil {
		return err
	}
	r.nats.stop()
	pause.For(ctx, down) // restart even if ctx is done
	p, err := start(context.WithoutCancel(ctx), roleNATS, restarted, r.Observations)
	if err != nil {
		return fmt.Errorf("restart the nats server: %w", err)
	}
	r.nats = p
	return nil
}

// The blob store is a folder behind a symbolic link. An outage points the link at a file,
// so that every operation of every process fails with ENOTDIR.
const (
	blobLink      = "blobs"
	blobDirectory = "directory"
	notADirectory = "file"
)

func (r *Rig) prepareBlobs() error {
	r.addresses.Blobs = "file://" + filepath.ToSlash(filepath.Join(r.dir, blobLink, "store"))
	return errors.Join(
		os.MkdirAll(filepath.Join(r.dir, blobDirectory, "store"), 0o700), // the clients start before the workers
		os.WriteFile(filepath.Join(r.dir, notADirectory), nil, 0o600),
		r.linkBlobs(blobDirectory),
	)
}

func (r *Rig) linkBlobs(target string) error {
	next := filepath.Join(r.dir, blobLink+".next")
	if err := os.Symlink(target, next); err != nil {
		return err
	}
	return os.Rename(next, filepath.Join(r.dir, blobLink))
}

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
