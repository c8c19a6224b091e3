package index

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
)

// format is the content of the file that marks the directory of an index. Change its number with the documents or with
// [words]: indexes of other formats are built anew.
const format = "chronicle index 2\n"

const (
	formatFile = "format"
	lockFile   = "lock"
	storeDir   = "bleve"
)

var (
	errLocked  = errors.New("another process uses it")
	errForeign = errors.New("it has files, and is not the directory of an index")
)

// directory is a locked directory.
type directory struct {
	path        string
	lock        *os.File
	isTemporary bool
}

// lockDirectory creates the directory if necessary.
func lockDirectory(path string) (*directory, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(filepath.Join(path, formatFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	isMarked := string(data) == format
	if err != nil {
		entries, err := os.ReadDir(path)
		if err != nil {
			return nil, err
		}
		if len(entries) > 0 && !(len(entries) == 1 && entries[0].Name() == lockFile) {
			return nil, fmt.Errorf("%s: %w", path, errForeign)
		}
	}
	lock, err := os.OpenFile(filepath.Join(path, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	d := &directory{path: path, lock: lock}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		d.close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = fmt.Errorf("%s: %w", path, errLocked)
		}
		return nil, err
	}
	if !isMarked {
		err = os.RemoveAll(filepath.Join(path, storeDir))
	}
	if err == nil && !isMarked {
		err = os.WriteFile(filepath.Join(path, formatFile), []byte(format), 0o600)
	}
	if err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

func (d *directory) close() {
	if d.isTemporary {
		_ = os.RemoveAll(d.path)
	}
	_ = d.lock.Close()
}

// temporaryPrefix begins the names of directories in that of the system for temporary files.
const temporaryPrefix = "chronicle-index-"

// temporaryDirectory is removed by close. It removes those that processes left which were killed.
func temporaryDirectory() (*directory, error) {
	old, err := filepath.Glob(filepath.Join(os.TempDir(), temporaryPrefix+"*"))
	if err != nil {
		return nil, err
	}
	for _, path := range old {
		if d, err := lockDirectory(path); err == nil {
			d.isTemporary = true
			d.close()
		}
	}
	path, err := os.MkdirTemp("", temporaryPrefix)
	if err != nil {
		return nil, err
	}
	d, err := lockDirectory(path)
	if err != nil {
		return nil, err
	}
	d.isTemporary = true
	return d, nil
}

// openDirectory opens the store in a directory, or in a temporary one if it cannot be used. Empty: in a temporary one. A
// store that cannot be read is built anew.
func openDirectory(path string, log *slog.Logger) (d *directory, s *store, err error) {
	if path != "" {
		if d, err = lockDirectory(path); err != nil {
			log.Warn("the directory of the index cannot be used; a temporary one is used, and built from the logs", "error", err)
		}
	}
	if d == nil {
		if d, err = temporaryDirectory(); err != nil {
			return nil, nil, fmt.Errorf("open index: %w", err)
		}
	}
	at := filepath.Join(d.path, storeDir)
	if s, err = openStore(at, log); err == nil {
		return d, s, nil
	}
	log.Warn("the index cannot be read and is built anew from the logs", "error", err)
	if err = os.RemoveAll(at); err == nil {
		s, err = openStore(at, log)
	}
	if err != nil {
		d.close()
		return nil, nil, err
	}
	return d, s, nil
}
