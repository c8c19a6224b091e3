package devserver

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
)

// ErrLocked is returned by Lock when the directory is in use.
var ErrLocked = errors.New("in use by another process")

// Lock takes a data directory for this process, and creates it first if need
// be. The lock goes with the process, however that ends, or with the last
// reference to it: keep it until Unlock. The error is ErrLocked when another
// process has it.
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
