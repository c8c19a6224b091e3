// Package reload reads files again when they change.
package reload

import (
	"bytes"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"
)

// Value is parsed from files.
type Value[T any] struct {
	files []string
	parse func(contents [][]byte) (T, error)

	mu       sync.Mutex
	seen     []fs.FileInfo // nil: the files must be read
	contents [][]byte
	value    T
	failed   string // the last reported error
}

// New returns a value that is parsed from the contents of files, in their order. A missing file is nil.
func New[T any](parse func(contents [][]byte) (T, error), files ...string) *Value[T] {
	return &Value[T]{files: files, parse: parse}
}

// Get returns the value, which it parses again if the content of a file changed. If that fails, it returns the last valid
// value, and the error once.
func (v *Value[T]) Get() (T, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := v.stat()
	if v.seen != nil && slices.EqualFunc(v.seen, now, isSame) {
		return v.value, nil
	}
	v.seen = now
	err := v.load()
	if err == nil {
		v.failed = ""
		return v.value, nil
	}
	v.seen = nil
	if err.Error() == v.failed {
		return v.value, nil
	}
	v.failed = err.Error()
	return v.value, err
}

func (v *Value[T]) stat() []fs.FileInfo {
	infos := make([]fs.FileInfo, len(v.files))
	for i, file := range v.files {
		infos[i], _ = os.Stat(file) // load reports the error
	}
	return infos
}

func (v *Value[T]) load() error {
	contents := make([][]byte, len(v.files))
	for i, file := range v.files {
		data, err := os.ReadFile(file)
		if err != nil && !os.IsNotExist(err) {
			return err
		}
		contents[i] = data
	}
	if slices.EqualFunc(contents, v.contents, bytes.Equal) {
		return nil
	}
	value, err := v.parse(contents)
	if err == nil {
		v.value, v.contents = value, contents
	}
	return err
}

// settled is longer than the granularity of modification times: a later change of a file has another time.
const settled = 2 * time.Second

func isSame(before, now fs.FileInfo) bool {
	if before == nil || now == nil {
		return before == nil && now == nil
	}
	return os.SameFile(before, now) && before.Size() == now.Size() && before.ModTime().Equal(now.ModTime()) && time.Since(now.ModTime()) > settled
}
