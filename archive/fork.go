package archive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/seed-9ed7edd4/chronicle/blobs"
)

// Origin says where the first events of a fork are.
type Origin struct {
	// ContextName is the context that was forked.
	ContextName string `json:"contextName"`
	// At is the counter of the last event that both have.
	At int `json:"at"`
}

// originFile is the entry of a fork.
type originFile struct {
	Version int `json:"version"`
	Origin
}

// maxForks is how many contexts a fork of forks can lead through. More are a
// circle.
const maxForks = 100

func originEntry(contextName string) string { return folderOf(contextName) + "origin.json" }

// Link makes a context a fork: its events up to origin.At are those of the
// origin, under its own name. No event is read or written. The archive must have
// them all, and of the new context none that comes before. Linking again does
// nothing; ErrConflict means that it is a fork of something else.
func (a *Archive) Link(ctx context.Context, contextName string, origin Origin) error {
	if err := a.link(ctx, contextName, origin); err != nil {
		return fmt.Errorf("fork context %s at event %d as context %s: %w", origin.ContextName, origin.At, contextName, err)
	}
	return nil
}

func (a *Archive) link(ctx context.Context, contextName string, origin Origin) error {
	if origin.ContextName == contextName || origin.At < 1 {
		return errors.New("want another name, and an event from 1 on")
	}
	folder, err := a.list(ctx, contextName)
	if err != nil {
		return err
	}
	if len(folder.spans) > 0 && folder.spans[0].first <= origin.At {
		return fmt.Errorf("%w: the context has events of its own from %d on", ErrConflict, folder.spans[0].first)
	}
	reach, err := a.reach(ctx, origin.ContextName, 0)
	if err != nil {
		return err
	}
	if reach < origin.At {
		return fmt.Errorf("the archive has its events up to %d only", reach)
	}
	entry, err := json.Marshal(originFile{version, origin})
	if err != nil {
		return err
	}
	if err = a.store.WriteOnce(ctx, originEntry(contextName), entry); errors.Is(err, blobs.ErrExists) {
		return ErrConflict
	}
	return err
}

// Origin says what a context was forked from; ok is false when it was not.
func (a *Archive) Origin(ctx context.Context, contextName string) (origin Origin, ok bool, err error) {
	folder, err := a.list(ctx, contextName)
	if err != nil || !folder.isFork {
		return Origin{}, false, err
	}
	origin, err = a.origin(ctx, contextName, 0)
	return origin, err == nil, err
}

// origin reads the entry of a fork to which so many others have led.
func (a *Archive) origin(ctx context.Context, contextName string, forks int) (Origin, error) {
	var file originFile
	data, err := a.store.Read(ctx, originEntry(contextName))
	if err == nil {
		if err = json.Unmarshal(data, &file); err != nil || file.At < 1 {
			err = fmt.Errorf("its entry %w: it says nothing about the origin", blobs.ErrCorrupt)
		}
	}
	switch {
	case err != nil:
	case file.Version != version:
		err = fmt.Errorf("it has the format %d and this program reads %d: use a newer one", file.Version, version)
	case forks == maxForks:
		err = fmt.Errorf("more than %d forks of forks, or a circle of them", maxForks)
	}
	if err != nil {
		return Origin{}, fmt.Errorf("read the origin of context %s in the archive: %w", contextName, err)
	}
	return file.Origin, nil
}

// reach is the counter up to which the archive has every event of a context to
// which so many forks have led; 0 when it has not even the first.
func (a *Archive) reach(ctx context.Context, contextName string, forks int) (int, error) {
	folder, err := a.list(ctx, contextName)
	if err != nil {
		return 0, err
	}
	reach := 0
	if folder.isFork {
		origin, err := a.origin(ctx, contextName, forks)
		if err != nil {
			return 0, err
		}
		reach, err = a.reach(ctx, origin.ContextName, forks+1)
		if err != nil || reach < origin.At {
			return reach, err
		}
		reach = origin.At
	}
	for _, s := range folder.cover() {
		if s.first > reach+1 {
			break
		}
		reach = max(reach, s.last)
	}
	return reach, nil
}
