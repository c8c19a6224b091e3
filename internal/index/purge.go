package index

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/blevesearch/bleve/v2/document"
	"github.com/blevesearch/bleve/v2/index/scorch"
	"github.com/blevesearch/bleve/v2/index/scorch/mergeplan"
	bleve "github.com/blevesearch/bleve_index_api"

	"github.com/seed-9ed7edd4/chronicle/internal/pause"
)

// segments returns the files that have documents, and those of them that also have deleted ones.
func (s *store) segments() (files, withDeleted []string, err error) {
	r, err := s.scorch.Reader()
	if err != nil {
		return nil, nil, err
	}
	defer r.Close()
	for _, segment := range r.(*scorch.IndexSnapshot).Segments() {
		file, ok := segment.Segment().(interface{ Path() string })
		if !ok {
			continue // in memory
		}
		files = append(files, file.Path())
		if segment.LiveSize() < segment.FullSize() {
			withDeleted = append(withDeleted, file.Path())
		}
	}
	return files, withDeleted, nil
}

// needsPurge reports whether documents were removed since the last complete purge.
func (s *store) needsPurge() (bool, error) {
	ids, err := s.ids(fieldKind, kindPurge)
	return len(ids) > 0, err
}

const (
	maxMerges    = 10
	fileInterval = 50 * time.Millisecond
)

// purge removes the text of deleted documents from the disk: bleve writes the files that have it anew.
func (s *store) purge(ctx context.Context) error {
	s.removing.Lock()
	removals := s.removals
	s.removing.Unlock()
	if err := s.sync(ctx); err != nil {
		return err
	}
	_, old, err := s.segments()
	if err != nil {
		return err
	}
	remaining := old
	for n := 0; len(remaining) > 0; n++ {
		if n == maxMerges {
			return fmt.Errorf("purge index: %d files were not merged", len(remaining))
		}
		if err := s.scorch.ForceMerge(ctx, &mergeplan.SingleSegmentMergePlanOptions); err != nil {
			return err
		}
		if err := s.sync(ctx); err != nil { // there is a second file, without which bleve does not merge
			return err
		}
		files, _, err := s.segments()
		if err != nil {
			return err
		}
		remaining = slices.DeleteFunc(remaining, func(file string) bool { return !slices.Contains(files, file) })
	}
	for slices.ContainsFunc(old, exists) { // bleve deletes files after it wrote others
		if !pause.For(ctx, fileInterval) {
			return ctx.Err()
		}
	}
	s.removing.Lock()
	defer s.removing.Unlock()
	if s.removals != removals {
		return nil // it needs another purge
	}
	batch := bleve.NewBatch()
	batch.Delete(purgeID)
	return s.scorch.Batch(batch)
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return !errors.Is(err, fs.ErrNotExist)
}

// sync waits until everything before is on disk.
func (s *store) sync(ctx context.Context) error {
	done := make(chan error, 1)
	batch := bleve.NewBatch()
	batch.Update(document.NewDocument(syncID))
	batch.SetPersistedCallback(func(err error) { done <- err })
	if err := s.scorch.Batch(batch); err != nil {
		return err
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func purgeMark() *document.Document {
	return document.NewDocument(purgeID).AddField(keyword(fieldKind, kindPurge, bleve.IndexField))
}

// verify reads all files.
func (s *store) verify() error {
	files, _, err := s.segments()
	if err != nil {
		return err
	}
	for _, path := range files {
		if err := verifyFile(path); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

// verifyFile compares a file with the checksum at its end.
func verifyFile(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	sum, want := crc32.NewIEEE(), uint32(0)
	if _, err = io.CopyN(sum, file, max(0, info.Size()-crc32.Size)); err == nil {
		err = binary.Read(file, binary.BigEndian, &want)
	}
	if err == nil && sum.Sum32() != want {
		err = errors.New("wrong checksum")
	}
	return err
}
