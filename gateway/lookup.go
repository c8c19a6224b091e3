package gateway

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/golang/groupcache/lru"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

const (
	unknownTTL = time.Second
	existsTTL  = time.Minute // in which another gateway or a rule of retention may have deleted the context
	maxNames   = 10_000
)

// names caches which contexts exist. The first request for a name is its lookup; concurrent
// requests wait for the outcome.
type names struct {
	mu      sync.Mutex
	seen    *lru.Cache      // of sighting by name
	waiting map[string]bool // unknown names that a room looks up
	lookups map[string]*lookup
}

// sighting is the outcome of a lookup.
type sighting struct {
	exists bool
	until  time.Time // when to look again
}

type lookup struct {
	done   chan struct{}
	failed bool
}

func newNames() *names {
	return &names{seen: lru.New(maxNames), waiting: map[string]bool{}, lookups: map[string]*lookup{}}
}

var errUndecided = errors.New("undecided")

// begin fails when the context does not exist or ctx is done. The caller must pass the error of the
// request to finish as soon as it is known; later calls of finish have no effect.
func (n *names) begin(ctx context.Context, name string) (finish func(error), err error) {
	for {
		n.mu.Lock()
		seen, isFresh := n.sighting(name)
		if n.waiting[name] || isFresh && !seen.exists {
			n.mu.Unlock()
			return nil, fmt.Errorf("context %s: %w", name, client.ErrNoContext)
		}
		running := n.lookups[name]
		if seen.exists || running == nil {
			own := &lookup{done: make(chan struct{})}
			if !seen.exists {
				n.lookups[name] = own
			}
			n.mu.Unlock()
			var once sync.Once
			return func(err error) { once.Do(func() { n.finish(name, own, err) }) }, nil
		}
		n.mu.Unlock()
		select {
		case <-running.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if running.failed {
			// Serializing further lookups would add up their timeouts.
			var once sync.Once
			return func(err error) { once.Do(func() { n.note(name, err) }) }, nil
		}
	}
}

func (n *names) finish(name string, own *lookup, err error) {
	n.note(name, err)
	n.mu.Lock()
	defer n.mu.Unlock()
	own.failed = err != nil && !errors.Is(err, client.ErrNoContext)
	if n.lookups[name] == own {
		delete(n.lookups, name)
	}
	close(own.done)
}

// forget makes the next request look the name up.
func (n *names) forget(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.seen.Remove(name)
}

// exist reports whether a request has found a context within existsTTL.
func (n *names) exist(name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	seen, isFresh := n.sighting(name)
	return isFresh && seen.exists
}

// sighting requires the lock.
func (n *names) sighting(name string) (seen sighting, isFresh bool) {
	value, _ := n.seen.Get(name)
	seen, _ = value.(sighting)
	return seen, time.Now().Before(seen.until)
}

func (n *names) note(name string, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case err == nil:
		n.seen.Add(name, sighting{true, time.Now().Add(existsTTL)})
		delete(n.waiting, name)
	case errors.Is(err, client.ErrNoContext):
		n.seen.Add(name, sighting{false, time.Now().Add(unknownTTL)})
	}
}

// wait makes a name unknown until stop is called or a request notes that the context exists. Delay
// is the time until the next lookup; 0 when the context exists.
func (n *names) wait(name string) (delay time.Duration, stop func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if seen, _ := n.sighting(name); seen.exists {
		return 0, func() {}
	}
	n.waiting[name] = true
	return unknownTTL, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.waiting, name)
	}
}

// named is a context whose requests fail without a lookup while its name is unknown. Send is
// exempt, because it creates the context. Send and Branch require room in the quota. It
// tells the index of changes.
type named struct {
	Context
	names *names
	quota *quota
	index *tenantIndex
}

// find returns ErrNoContext if the context does not exist. It reads its log if no request has found it lately.
func (c named) find(ctx context.Context) error {
	if c.names.exist(c.Name()) {
		return nil
	}
	for _, err := range c.Events(ctx, "") {
		return err
	}
	return fmt.Errorf("context %s: %w", c.Name(), client.ErrNoContext)
}

// isNew reports whether the context seems to be new.
func (c named) isNew(ctx context.Context) bool { return c.find(ctx) != nil }

func (c named) Events(ctx context.Context, from string) iter.Seq2[event.Event, error] {
	return c.known(ctx, c.Context.Events(ctx, from))
}

func (c named) EventsAndWaiting(ctx context.Context, from string, waiting func(client.Waiting)) iter.Seq2[event.Event, error] {
	return c.known(ctx, c.Context.EventsAndWaiting(ctx, from, waiting))
}

// known fails for an unknown name, and notes whether the log exists.
func (c named) known(ctx context.Context, log iter.Seq2[event.Event, error]) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		finish, err := c.names.begin(ctx, c.Name())
		if err != nil {
			yield(event.Event{}, err)
			return
		}
		defer finish(errUndecided)
		for e, err := range log {
			finish(err)
			if !yield(e, err) {
				return
			}
		}
		finish(nil)
	}
}

func (c named) Send(ctx context.Context, events ...event.Event) (client.Receipt, error) {
	defer c.index.changed(c.Name())
	isCounted, err := c.quota.admit(ctx, c.Name(), c.quota.contexts > 0 && c.isNew(ctx))
	if err != nil {
		return client.Receipt{}, err
	}
	sent, err := c.Context.Send(ctx, events...)
	if isCounted && errors.As(err, new(*event.FieldError)) { // nothing was sent
		c.quota.rename(c.Name(), "")
	}
	if err == nil || errors.Is(err, client.ErrRefused) { // it has recorded the events, or their rejection
		c.names.note(c.Name(), nil)
	}
	return sent, err
}

func (c named) Attachment(ctx context.Context, id string) (file event.FileAttachment, err error) {
	err = c.do(ctx, func() error { file, err = c.Context.Attachment(ctx, id); return err })
	return file, err
}

func (c named) State(ctx context.Context) (state wire.State, err error) {
	err = c.do(ctx, func() error { state, err = c.Context.State(ctx); return err })
	return state, err
}

func (c named) UnattendedSince(ctx context.Context) (since time.Time, err error) {
	err = c.do(ctx, func() error { since, err = c.Context.UnattendedSince(ctx); return err })
	return since, err
}

func (c named) Branch(ctx context.Context, options client.BranchOptions) (created client.Branched, err error) {
	counted, isCounted := cmp.Or(options.Name, rand.Text()), false
	if c.quota.isLimited() {
		options.Admit = func() (err error) {
			if !isCounted {
				isCounted, err = c.quota.admit(ctx, counted, true)
			}
			return err
		}
	}
	defer func() {
		if isCounted {
			c.quota.rename(counted, created.ContextName)
		}
	}()
	err = c.do(ctx, func() error { created, err = c.Context.Branch(ctx, options); return err })
	if created.ContextName != "" {
		c.names.note(created.ContextName, nil)
		c.index.changed(created.ContextName)
	}
	return created, err
}

func (c named) Branches(ctx context.Context) (branches client.Branches, err error) {
	err = c.do(ctx, func() error { branches, err = c.Context.Branches(ctx); return err })
	return branches, err
}

func (c named) Interrupt(ctx context.Context) error {
	defer c.index.changed(c.Name())
	return c.do(ctx, func() error { return c.Context.Interrupt(ctx) })
}

func (c named) Close(ctx context.Context, reason string) error {
	defer c.index.changed(c.Name())
	return c.do(ctx, func() error { return c.Context.Close(ctx, reason) })
}

func (c named) StartDeletion(ctx context.Context, o client.DeleteOptions) error {
	defer c.index.changed(c.Name())
	err := c.do(ctx, func() error { return c.Context.StartDeletion(ctx, o) })
	if err == nil {
		c.names.forget(c.Name())
		c.quota.rename(c.Name(), "")
	}
	return err
}

func (c named) do(ctx context.Context, request func() error) error {
	finish, err := c.names.begin(ctx, c.Name())
	if err != nil {
		return err
	}
	defer finish(errUndecided)
	err = request()
	finish(err)
	return err
}
