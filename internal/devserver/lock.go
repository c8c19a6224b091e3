package devserver

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
)

var ErrLocked = errors.New("in use by another process")

// Lock creates the directory if needed. The error is [ErrLocked] if another process holds the lock.
// Unlock, the end of the process, or the garbage collection of the returned value releases it.
func Lock(dataDir string) (*flock.Flock, error) {
	if err := os.MkdirAll(dataDir, 0o700); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	lock := flock.New(filepath.Join(dataDir, "lock"), flock.SetPermissions(0o600))
	locked, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock data directory: %w", err)
	}
	if !locked {
		return nil, fmt.Errorf("data directory %s: %w", dataDir, ErrLocked)
	}
	return lock, nil
}
