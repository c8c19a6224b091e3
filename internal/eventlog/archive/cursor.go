package archive

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
)

// Position is a place in the log of a context: after the event with a counter, in the log of a run.
// The zero value is the start of the log.
type Position struct {
	RunID string `json:"runId,omitempty"`
	After int    `json:"after"`
}

// Progress is how far a consumer of the log, such as a hook, has read. It has nothing to do with [Reader].
type Progress struct {
	Position
	// Epoch is the [Run.Number] of the newest run that delivers to this consumer. The run sets it before
	// its first delivery. 0: none yet.
	Epoch int `json:"epoch,omitempty"`
	// FailingSince is when the consumer began to fail; zero: it does not fail. Through is the counter of
	// the last event in the newest batch that failed; 0: none.
	FailingSince time.Time `json:"failingSince,omitzero"`
	Through      int       `json:"through,omitempty"`
}

// Cursor is the stored progress of a consumer in the log of a context.
type Cursor struct {
	Progress Progress

	archive  *Archive
	consumer string
	folder   string
	number   int      // of the newest object; 0: none
	old      []string // names of objects to delete
}

type cursorEntry struct {
	Version  int    `json:"version"`
	Consumer string `json:"reader"` // the name in stored cursors
	Progress
}

// Cursor reads the cursor of a consumer, which has a name that is not empty.
func (a *Archive) Cursor(ctx context.Context, contextName, consumer string) (*Cursor, error) {
	folder := fmt.Sprintf("%s%.16x/", folderOf(cursors, contextName), sha256.Sum256([]byte(consumer)))
	for {
		c := &Cursor{archive: a, consumer: consumer, folder: folder}
		for name, err := range a.store.Names(ctx, folder) {
			if err != nil {
				return nil, c.explain("list", contextName, err)
			}
			if n, err := strconv.Atoi(strings.TrimSuffix(path.Base(name), ".json")); err == nil && n > c.number {
				c.number = n
			}
			c.old = append(c.old, name)
		}
		if c.number == 0 {
			return c, nil
		}
		var entry cursorEntry
		err := a.readEntry(ctx, c.entry(), &entry)
		if errors.Is(err, blobs.ErrNotFound) {
			continue // a newer one has replaced it
		}
		if err != nil {
			return nil, c.explain("read", contextName, err)
		}
		c.Progress = entry.Progress
		return c, nil
	}
}

func (c *Cursor) entry() string { return fmt.Sprintf("%s%012d.json", c.folder, c.number) }

func (c *Cursor) explain(verb, contextName string, err error) error {
	return fmt.Errorf("%s the cursor of %s in context %s: %w", verb, c.consumer, contextName, err)
}

// IsNew reports whether the cursor was never set.
func (c *Cursor) IsNew() bool { return c.number == 0 }

// Set stores progress, unless it is unchanged, as an object with the next number, and deletes older objects.
// The highest number counts. If another writer has moved the cursor since it was read, Set fails with
// [blobs.ErrExists]. If the object that the other writer stored under the same number is already deleted, Set
// succeeds but has no effect.
func (c *Cursor) Set(ctx context.Context, progress Progress) error {
	if !c.IsNew() && progress == c.Progress {
		return nil
	}
	next := *c
	next.number, next.Progress = c.number+1, progress
	data, err := json.Marshal(cursorEntry{version, c.consumer, progress})
	if err != nil {
		return err
	}
	if err := c.archive.store.WriteOnce(ctx, next.entry(), data); err != nil {
		return fmt.Errorf("set the cursor of %s: %w", c.consumer, err)
	}
	for _, name := range c.old {
		if err := c.archive.store.Delete(ctx, name); err != nil {
			return fmt.Errorf("set the cursor of %s: %w", c.consumer, err)
		}
	}
	next.old = []string{next.entry()}
	*c = next
	return nil
}
