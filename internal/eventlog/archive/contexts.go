package archive

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Stored is a context of which the archive has a log.
type Stored struct {
	ContextName string
	// At is when the newest segment or registration was stored. An open session may have newer events.
	At time.Time
}

// Contexts yields the contexts without a tenant, and then those of each tenant. An error is the last element.
func (a *Archive) Contexts(ctx context.Context) iter.Seq2[Stored, error] {
	return func(yield func(Stored, error) bool) {
		names := []string{""}
		for folder, err := range a.store.Folders(ctx, tenants) {
			if err != nil {
				yield(Stored{}, fmt.Errorf("list the tenants: %w", err))
				return
			}
			if tenant := nameOf(folder); event.ValidateTenant(tenant) == nil {
				names = append(names, tenant)
			}
		}
		for _, tenant := range names {
			for stored, err := range a.ContextsOf(ctx, tenant) {
				if !yield(stored, err) || err != nil {
					return
				}
			}
		}
	}
}

// ContextsOf is [Archive.Contexts] for a tenant; "": those without one.
func (a *Archive) ContextsOf(ctx context.Context, tenant string) iter.Seq2[Stored, error] {
	return func(yield func(Stored, error) bool) {
		prefix := kindOf(logs, tenant)
		var last Stored
		for object, err := range a.store.Objects(ctx, prefix) {
			if err != nil {
				yield(Stored{}, fmt.Errorf("list the contexts: %w", err))
				return
			}
			folder, _, _ := strings.Cut(strings.TrimPrefix(object.Name, prefix), "/")
			name := event.JoinTenant(tenant, nameOf(folder))
			switch {
			case event.ValidateContextName(name) != nil:
				continue
			case name != last.ContextName:
				if last.ContextName != "" && !yield(last, nil) {
					return
				}
				last = Stored{name, object.StoredAt}
			case object.StoredAt.After(last.At):
				last.At = object.StoredAt
			}
		}
		if last.ContextName != "" {
			yield(last, nil)
		}
	}
}

// nameOf returns "" for a folder that has no name of folderName.
func nameOf(folder string) string {
	if name := contextOf(folder); folderName(name) == folder {
		return name
	}
	return ""
}
