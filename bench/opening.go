package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/eventlog/blobs/blobstest"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

// opening restores a session from an archive with 2,000 segments of 500 runs, in a
// folder and in a store with 50 ms per read.
func opening(r *runner) error {
	dir, err := os.MkdirTemp("", "chronicle-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	folder, err := blobs.Open(r.ctx, "file://"+filepath.ToSlash(dir), "default")
	if err != nil {
		return err
	}
	defer folder.Close()
	slow := blobstest.Open()
	defer slow.Store.Close()
	for name, store := range map[string]*blobs.Store{"folder": folder, "50ms_reads": slow.Store} {
		if err := fillArchive(r.ctx, archive.New(store)); err != nil {
			return err
		}
		if store == slow.Store {
			slow.SetLatency(50 * time.Millisecond)
		}
		var took samples
		for range r.times(10) {
			began := time.Now()
			if err := restore(r.ctx, archive.New(store)); err != nil {
				return err
			}
			took.add(time.Since(began))
		}
		r.report.add("opening_ms_2000_segments_"+name, "ms", took)
	}
	return nil
}

const (
	openingRuns     = 500
	openingSegments = 2_000
	openingEvents   = 20_000
)

func fillArchive(ctx context.Context, a *archive.Archive) error {
	log := conversation(openingEvents)
	behind := ""
	const each, segment = openingEvents / openingRuns, openingEvents / openingSegments
	for run := range openingRuns {
		folder, err := a.Folder(ctx, "bench")
		if err != nil {
			return err
		}
		id := fmt.Sprint("run-", run)
		if err := folder.Register(ctx, archive.Run{ID: id, After: run * each, Behind: behind}); err != nil {
			return err
		}
		behind = id
		for n := run * each; n < (run+1)*each; n += segment {
			events := log[n : n+segment]
			for i := range events {
				events[i].ContextName = "bench"
			}
			if _, err := a.Write(ctx, "bench", id, events); err != nil {
				return err
			}
		}
	}
	return nil
}

// restore reads the log and packs its session, as the activity Open does.
func restore(ctx context.Context, a *archive.Archive) error {
	folder, err := a.Folder(ctx, "bench")
	if err != nil {
		return err
	}
	parts, err := folder.View(ctx, "", 0)
	if err != nil {
		return err
	}
	var events []event.Event
	reader := a.Read(ctx, parts, 0)
	defer reader.Close()
	for i := range parts {
		for e, err := range reader.Part(i) {
			if err != nil {
				return err
			}
			events = append(events, e)
		}
	}
	if len(events) != openingEvents {
		return fmt.Errorf("the archive has %d events, want %d", len(events), openingEvents)
	}
	_, err = wire.Pack(reducer.Load("bench", reducer.Reduce, events...))
	return err
}
