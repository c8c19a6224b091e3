package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
)

// createFork creates a fork with a name, or with a new one if the name is "". The fork is nil if it was not registered.
func (c *Context) createFork(ctx context.Context, o BranchOptions, origin archive.Origin) (*Context, error) {
	var named *Context
	if o.Name != "" {
		var err error
		if named, err = c.client.Open(o.Name); err == nil {
			err = c.checkTenant(named)
		}
		if err != nil {
			return nil, err
		}
	}
	switch {
	case o.Key != "":
		return c.createKeyed(ctx, o, named, origin)
	case named != nil:
		err := named.checkNotExists(ctx, "fork as")
		if err == nil {
			err = o.Admit()
		}
		if err != nil {
			return nil, err
		}
		return named.resumeFrom(ctx, origin)
	}
	if err := o.Admit(); err != nil {
		return nil, err
	}
	for {
		fork, err := c.unused(ctx)
		if err != nil {
			return nil, err
		}
		if fork, err = fork.startFrom(ctx, origin); !errors.Is(err, ErrExists) {
			return fork, err
		}
	}
}

// createKeyed creates or completes the fork of a key. Its claim with the number n names it, unless another fork was
// registered with this name in the meantime.
func (c *Context) createKeyed(ctx context.Context, o BranchOptions, named *Context, origin archive.Origin) (*Context, error) {
	request := o.ids()(0)
	for n := 1; ; n++ {
		fork, err := named, error(nil)
		if fork == nil {
			fork, err = c.unused(ctx)
		}
		if err != nil {
			return nil, err
		}
		origin.Claim = archive.ClaimName(c.name, o.Key, n)
		claim, err := c.client.options.Archive.ClaimFork(ctx, origin.Claim, archive.Claim{ContextName: fork.name, Request: request})
		if err == nil && claim.Request != request {
			err = ErrKeyReused
		}
		if err != nil {
			return nil, fmt.Errorf("fork context %s: %w", c.Name(), err)
		}
		fork, err = c.client.context(claim.ContextName).completeFrom(ctx, origin, o.Admit)
		if named != nil || !errors.Is(err, ErrExists) {
			return fork, err
		}
	}
}

// unused returns a context that does not exist, named after the root. Another process may create it.
func (c *Context) unused(ctx context.Context) (*Context, error) {
	root, err := c.root(ctx)
	if err != nil {
		return nil, err
	}
	for n := 2; ; n += 1 + rand.IntN(max(1, n-denseNames)) {
		suffix := fmt.Sprintf("-%d", n)
		fork, err := c.client.Open(root[:min(len(root), event.MaxContextName-len(suffix))] + suffix)
		if err == nil {
			err = fork.checkNotExists(ctx, "fork as")
		}
		if errors.Is(err, ErrExists) {
			continue
		}
		if err == nil {
			_, err = c.client.options.Archive.Registered(ctx, fork.name)
		}
		switch {
		case errors.Is(err, archive.ErrNoRun):
			return fork, nil
		case err != nil:
			return nil, err
		}
	}
}

// denseNames is the number from which generated names skip numbers: thousands of branches cost few lookups.
const denseNames = 10

// root returns the name of the context from which c descends by forks.
func (c *Context) root(ctx context.Context) (string, error) {
	for name := c.name; ; {
		origin, err := c.client.originOf(ctx, name)
		if err != nil || origin == nil {
			return c.client.context(name).Name(), err
		}
		name = origin.ContextName
	}
}
