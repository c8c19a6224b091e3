package archive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
)

// Fork is a context whose log begins with events of another one.
type Fork struct {
	ContextName string
	Origin      Origin
}

// forkEntry lists a fork in the folder of its origin. It is written before the registration of the fork, which has
// the facts. Its name alone is read.
type forkEntry struct {
	Version     int    `json:"version"`
	ContextName string `json:"contextName"`
}

func forkEntryName(origin, fork string) string {
	_, local := event.CutTenant(fork) // that of the origin, too
	return folderOf(forks, origin) + folderName(local) + ".json"
}

func (a *Archive) listFork(ctx context.Context, origin, fork string) error {
	entry, err := json.Marshal(forkEntry{version, fork})
	if err == nil {
		err = a.store.WriteOnce(ctx, forkEntryName(origin, fork), entry)
	}
	if err != nil {
		return fmt.Errorf("list context %s as a fork of %s: %w", fork, origin, err)
	}
	return nil
}

func (a *Archive) unlistFork(ctx context.Context, origin Origin, fork string) error {
	err := a.store.Delete(ctx, forkEntryName(origin.ContextName, fork))
	if err == nil && origin.Claim != "" {
		err = a.store.Delete(ctx, origin.Claim)
	}
	return err
}

// Forks returns the contexts that were forked from a context, without forks of these forks, in the order of their
// folders. A fork that was never registered, because it was interrupted, is omitted.
func (a *Archive) Forks(ctx context.Context, contextName string) ([]Fork, error) {
	var entries []string
	for name, err := range a.store.Names(ctx, folderOf(forks, contextName)) {
		if err != nil {
			return nil, fmt.Errorf("list the forks of context %s: %w", contextName, err)
		}
		if !strings.HasPrefix(name, folderOf(forks, contextName)+claims) {
			entries = append(entries, name)
		}
	}
	found := make([]*Fork, len(entries))
	errs := make([]error, len(entries))
	slots := make(chan struct{}, maxConcurrentReads)
	var all sync.WaitGroup
	for i, name := range entries {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			found[i], errs[i] = a.fork(ctx, contextName, name)
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("read the forks of context %s: %w", contextName, err)
	}
	var registered []Fork
	for _, f := range found {
		if f != nil {
			registered = append(registered, *f)
		}
	}
	return registered, nil
}

// fork returns nil for an entry whose context is not registered as a fork of the origin.
func (a *Archive) fork(ctx context.Context, origin, entry string) (*Fork, error) {
	tenant, _ := event.CutTenant(origin)
	fork := event.JoinTenant(tenant, contextOf(strings.TrimSuffix(path.Base(entry), ".json")))
	of, err := a.Registered(ctx, fork)
	if errors.Is(err, ErrNoRun) {
		return nil, nil
	}
	if err != nil || of == nil || of.ContextName != origin {
		return nil, err
	}
	return &Fork{fork, *of}, nil
}

// Origin returns the origin of a fork; nil for any other context, and for a fork that is detached, whose origin is
// deleted or will be. [ErrNoRun]: the context is not registered.
func (a *Archive) Origin(ctx context.Context, contextName string) (*Origin, error) {
	origin, err := a.Registered(ctx, contextName)
	if err != nil || origin == nil {
		return nil, err
	}
	folder, err := a.Folder(ctx, contextName)
	if err != nil || folder.isDetached(*origin) {
		return nil, err
	}
	return origin, nil
}

// Registered is [Archive.Origin], also for a fork that is detached.
func (a *Archive) Registered(ctx context.Context, contextName string) (*Origin, error) {
	var first Run // that of a fork has its origin
	err := a.readEntry(ctx, runEntry(contextName, 1), &first)
	if errors.Is(err, blobs.ErrNotFound) {
		err = ErrNoRun
	}
	if err != nil {
		return nil, fmt.Errorf("read the origin of context %s: %w", contextName, err)
	}
	return first.Origin, nil
}
