package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seed-9ed7edd4/chronicle/internal/pause"
	"github.com/seed-9ed7edd4/chronicle/test/rig"
)

const (
	indexedContexts = 20
	indexedBytes    = 250_000 // of the message of each
)

// indexed measures the index of a gateway: the time from the start until it has all messages, its size, and how long after
// a message was recorded it is found.
func indexed(r *runner) error {
	var filling errgroup.Group
	filling.SetLimit(8)
	for i := range indexedContexts {
		filling.Go(func() error { return r.fill(fmt.Sprintf("indexed-%d", i), prose(i, indexedBytes-10)+" benchmark") })
	}
	if err := filling.Wait(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "chronicle-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	began := time.Now()
	gateway, err := r.StartGateway(r.ctx, "--index-dir", dir)
	if err != nil {
		return err
	}
	defer func() { _ = gateway.Stop() }()
	at := gateway.Ready["url"]
	if err := awaitHits(r.ctx, at, "benchmark", indexedContexts); err != nil {
		return err
	}
	const indexedMB = indexedContexts * indexedBytes / mb
	r.report.add("index_build_ms_per_mb", "ms", samples{float64(time.Since(began)) / float64(time.Millisecond) / indexedMB})
	var lag samples
	t := r.context("index-lag")
	for n := range r.times(30) {
		key := fmt.Sprintf("lag%d", n)
		if _, err := t.say(message(key)); err != nil {
			return err
		}
		recorded := time.Now()
		if err := awaitHits(r.ctx, at, key+" ", 1); err != nil {
			return err
		}
		lag.add(time.Since(recorded))
		if _, err := t.await(rig.Ended, key); err != nil {
			return err
		}
	}
	r.report.add("recorded_to_found_ms", "ms", lag)
	if err := gateway.Stop(); err != nil {
		return err
	}
	size := 0.0
	err = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			size += float64(info.Size())
		}
		return err
	})
	r.report.add("index_mb_per_mb", "MB", samples{size / mb / indexedMB})
	return err
}

// awaitHits polls a search until it has a number of hits.
func awaitHits(ctx context.Context, gateway, word string, n int) error {
	ctx, cancel := context.WithTimeout(ctx, turnTimeout)
	defer cancel()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, gateway+"/search?limit=1000&q="+url.QueryEscape(word), nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		var page struct{ Hits []struct{} }
		err = json.NewDecoder(response.Body).Decode(&page)
		_ = response.Body.Close()
		switch {
		case err != nil:
			return err
		case len(page.Hits) >= n:
			return nil
		case !pause.For(ctx, 5*time.Millisecond):
			return errors.Join(ctx.Err(), fmt.Errorf("%d of %d messages with %q are found", len(page.Hits), n, word))
		}
	}
}
