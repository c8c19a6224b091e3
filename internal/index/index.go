package index

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/pause"
)

// Source has the contexts of an index: a [client.Client], or that of a tenant.
type Source interface {
	List(ctx context.Context, query string) iter.Seq2[client.Summary, error]
	// Stored yields the names in the blob store, also of contexts that Temporal does not have any more.
	Stored(ctx context.Context) iter.Seq2[string, error]
	Summary(ctx context.Context, name string) (client.Summary, error)
	Events(ctx context.Context, name, from string) iter.Seq2[event.Event, error]
	Watch(ctx context.Context, changed func(contextName string)) error
}

// Options configure an [Index]. The zero value is valid.
type Options struct {
	// Dir is the directory of the index, which is created. One that another process uses, or that cannot be written, is
	// not used. Empty: a temporary one, which Close removes.
	Dir string
	Log *slog.Logger // nil: none
}

const (
	readers   = 4                      // logs that are read at once
	debounce  = 200 * time.Millisecond // from a notice to the read
	afterward = 2 * time.Second        // from that read to another: what a notice is about may be recorded after it
	retry     = 5 * time.Second        // after an error

	batchMessages = 500
	batchBytes    = 1 << 20

	// A pass over the list of contexts is followed by a pause, so that lists of any length cost the server the same.
	passRatio        = 50
	minPass, maxPass = 5 * time.Second, 5 * time.Minute
	sweep            = 25 // open contexts that a pass reads without a reason, because a notice may be lost

	// A list of the blob store is followed by a pause.
	storedInterval = time.Hour // at least
	storedRatio    = 50
	recheck        = 2 * time.Minute // after Temporal forgot a context: a deletion reaches the blob store up to a minute later

	// A purge writes large parts of the index. It is followed by a pause.
	purgeInterval = time.Minute // at least
	purgeRatio    = 20
	syncTimeout   = 2 * time.Second
)

// Index is the contexts of a source. It is safe for concurrent use.
type Index struct {
	source Source
	log    *slog.Logger
	dir    *directory
	store  *store
	list   *list
	queue  *queue
	purges chan struct{}
	ready  chan struct{} // closed when the list has the contexts of Temporal
	stored chan struct{} // closed when the queue has had those of the blob store
	cancel context.CancelFunc
	ended  sync.WaitGroup

	mu     sync.Mutex
	unread map[string]error // contexts whose last read failed
}

// Open opens an index, and begins to follow the source.
func Open(source Source, o Options) (*Index, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	dir, store, err := openDirectory(o.Dir, o.Log)
	if err != nil {
		return nil, err
	}
	x := &Index{
		source: source, log: o.Log, dir: dir, store: store, list: newList(), queue: newQueue(),
		purges: make(chan struct{}, 1), ready: make(chan struct{}), stored: make(chan struct{}),
		unread: map[string]error{},
	}
	known, err := store.records()
	var needsPurge bool
	if err == nil {
		needsPurge, err = store.needsPurge()
	}
	if err != nil {
		store.close()
		dir.close()
		return nil, err
	}
	for _, r := range known {
		x.list.set(r)
	}
	if needsPurge {
		x.purges <- struct{}{}
	}
	ctx, cancel := context.WithCancel(context.Background())
	x.cancel = cancel
	if err := source.Watch(ctx, x.Changed); err != nil {
		x.log.Warn("no notices: changes are found by reading the list of contexts", "error", err)
	}
	x.ended.Go(func() { x.reconcile(ctx) })
	x.ended.Go(func() { x.reconcileStored(ctx) })
	x.ended.Go(func() { x.purge(ctx) })
	for range readers {
		x.ended.Go(func() { x.read(ctx) })
	}
	return x, nil
}

// Close ends the index.
func (x *Index) Close() {
	x.cancel()
	x.queue.close()
	x.ended.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), syncTimeout)
	defer cancel()
	_ = x.store.sync(ctx) // after an error, the next process reads the logs again
	x.store.close()
	x.dir.close()
}

// List returns a page of the list of contexts, by last activity, and whether there are more after it. After Open, it
// waits until the list has all contexts of Temporal. Those that only the blob store has follow when they were read.
func (x *Index) List(ctx context.Context, f Filter) (page []Context, more bool, err error) {
	if err := x.awaitList(ctx); err != nil {
		return nil, false, err
	}
	page, more = x.list.find(f)
	return page, more, nil
}

func (x *Index) awaitList(ctx context.Context) error {
	select {
	case <-x.ready:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Search returns hits, and whether there are more after them. The error is ErrQuery for an invalid query.
func (x *Index) Search(ctx context.Context, q Query) (hits []Hit, more bool, err error) {
	clauses, err := parseQuery(q.Text)
	if err != nil {
		return nil, false, err
	}
	if err := x.awaitList(ctx); err != nil {
		return nil, false, err
	}
	accepts := func(name string) bool {
		r := x.list.get(name)
		return r != nil && r.hasLabel(q.Label)
	}
	limit := min(q.Limit, MaxHits-q.From)
	if limit <= 0 {
		return []Hit{}, false, nil
	}
	hits, err = x.store.search(ctx, clauses, q.ContextName, accepts, q.From, limit+1)
	if err != nil {
		return nil, false, err
	}
	more = len(hits) > limit && q.From+limit < MaxHits
	hits = hits[:min(limit, len(hits))]
	for i := range hits {
		if r := x.list.get(hits[i].ContextName); r != nil {
			hits[i].Title = r.Title
		}
	}
	return hits, more, nil
}

// Unread returns the number of contexts whose logs were not read yet. The list has them without what only logs have, such
// as the archive mark, and without CreatedAt. No search finds their messages.
func (x *Index) Unread() int { return x.list.unread() }

// Pending returns the number of contexts whose logs are about to be read.
func (x *Index) Pending() int { return x.queue.pending() }

// CatchUp waits until all logs were read, and returns the errors of those that were not, by context.
func (x *Index) CatchUp(ctx context.Context) (unread map[string]error, err error) {
	select {
	case <-x.stored:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err := x.queue.awaitEmpty(ctx); err != nil {
		return nil, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return maps.Clone(x.unread), nil
}

// Changed reads a context soon, and once more, because what it is about may be recorded a little later.
func (x *Index) Changed(name string) {
	x.queue.addAfter(debounce, name, func() { x.queue.addAfter(afterward, name, nil) })
}

// reconcile compares the list of contexts with that of the source, from time to time.
func (x *Index) reconcile(ctx context.Context) {
	for {
		began := time.Now()
		err := x.compare(ctx)
		if ctx.Err() != nil {
			return
		}
		delay := min(max(passRatio*time.Since(began), minPass), maxPass)
		if err != nil {
			x.log.Debug("the contexts were not listed", "error", err)
			delay = time.Second
		}
		if !pause.For(ctx, delay) {
			return
		}
	}
}

// compare queues contexts that differ from those of the source.
func (x *Index) compare(ctx context.Context) error {
	isFirst := false
	select {
	case <-x.ready:
	default:
		isFirst = true
	}
	listed := map[string]bool{}
	var changed []string
	for s, err := range x.source.List(ctx, "") {
		if err != nil {
			return err
		}
		listed[s.ContextName] = true
		r := x.list.get(s.ContextName)
		switch {
		case r == nil && isFirst:
			x.list.set(newRecord(s))
			changed = append(changed, s.ContextName)
		case r == nil || !sameSummary(r.Summary, s) || isFirst && s.ClosedAt.IsZero():
			changed = append(changed, s.ContextName)
		}
	}
	var open []*record
	for _, r := range x.list.all() {
		switch {
		case !listed[r.ContextName] && !r.isForgotten:
			changed = append(changed, r.ContextName) // it is gone, or not listed yet
		case r.ClosedAt.IsZero():
			open = append(open, r)
		}
	}
	for _, name := range changed {
		x.queue.add(name)
	}
	if isFirst {
		close(x.ready)
		return nil
	}
	slices.SortStableFunc(open, func(a, b *record) int { return a.readAt.Compare(b.readAt) })
	for _, r := range open[:min(len(open), sweep)] {
		x.queue.add(r.ContextName)
	}
	return nil
}

// reconcileStored compares the list of contexts with the blob store, from time to time.
func (x *Index) reconcileStored(ctx context.Context) {
	if x.awaitList(ctx) != nil {
		return
	}
	for isFirst := true; ctx.Err() == nil; isFirst = false {
		began := time.Now()
		if err := x.compareStored(ctx); err != nil && ctx.Err() == nil {
			x.log.Warn("the blob store was not listed: contexts that Temporal does not have any more may be missing", "error", err)
		}
		if isFirst {
			close(x.stored)
		}
		delay := max(storedInterval, storedRatio*time.Since(began))
		if isFirst { // deletions may have run when the index opened
			delay = recheck
		}
		pause.For(ctx, delay)
	}
}

// compareStored queues contexts that the blob store has and the list has not, or the reverse.
func (x *Index) compareStored(ctx context.Context) error {
	stored := map[string]bool{}
	for name, err := range x.source.Stored(ctx) {
		if err != nil {
			return err
		}
		if stored[name] = true; x.list.get(name) == nil {
			x.queue.add(name)
		}
	}
	for _, r := range x.list.all() {
		if r.isForgotten && !stored[r.ContextName] {
			x.queue.add(r.ContextName)
		}
	}
	return nil
}

// purge removes text from the disk after contexts were deleted.
func (x *Index) purge(ctx context.Context) {
	for {
		select {
		case <-x.purges:
		case <-ctx.Done():
			return
		}
		began := time.Now()
		if err := x.store.purge(ctx); err != nil && ctx.Err() == nil {
			x.log.Error("the text of deleted contexts is still in files of the index", "error", err)
			x.needPurge()
		}
		if !pause.For(ctx, max(purgeInterval, purgeRatio*time.Since(began))) {
			return
		}
	}
}

func (x *Index) needPurge() {
	select {
	case x.purges <- struct{}{}:
	default:
	}
}

// read reads the queued contexts.
func (x *Index) read(ctx context.Context) {
	for {
		name, ok := x.queue.next()
		if !ok {
			return
		}
		err := x.update(ctx, name)
		x.note(name, err)
		x.queue.done(name)
		if err != nil && ctx.Err() == nil {
			x.log.Debug("a log was not read", "context", name, "error", err)
			if !errors.As(err, new(*client.GapError)) {
				x.queue.addAfter(retry, name, nil)
			}
		}
	}
}

func (x *Index) note(name string, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if delete(x.unread, name); err != nil {
		x.unread[name] = err
	}
}

// update reads what is new in a context.
func (x *Index) update(ctx context.Context, name string) error {
	s, err := x.source.Summary(ctx, name)
	isForgotten := errors.Is(err, client.ErrNoContext)
	if err != nil && !isForgotten {
		return err
	}
	known := x.list.get(name)
	if isForgotten {
		if s.ContextName = name; known != nil {
			s = known.Summary
		}
		s.Status = statusClosed
	}
	if known == nil {
		known = newRecord(s)
	}
	u := update{index: x, record: known.with(s)}
	err = u.tail(ctx)
	if errors.Is(err, errOtherLog) {
		u = update{index: x, record: newRecord(s)}
		if u.deleted, err = x.store.messageIDs(name); err != nil {
			return err
		}
		err = u.all(ctx)
	}
	if isForgotten && errors.Is(err, client.ErrNoContext) {
		return x.remove(name)
	}
	if isForgotten {
		u.record.isForgotten = true
		if err == nil {
			u.record.summarize()
		}
		if !known.isForgotten && !known.readAt.IsZero() { // perhaps a deletion runs
			x.queue.addAfter(recheck, name, nil)
		}
	}
	if flushErr := u.flush(); err == nil {
		err = flushErr
	}
	if known.Through == 0 || known.CreatedAt != u.record.CreatedAt {
		x.checkForks(name)
	}
	if x.isMisplaced(u.record) { // its origin was read in the meantime
		x.queue.add(name)
	}
	return err
}

func (x *Index) remove(name string) error {
	if x.list.get(name) == nil {
		return nil
	}
	if err := x.store.remove(name); err != nil {
		return err
	}
	x.list.remove(name)
	x.needPurge()
	x.checkForks(name)
	return nil
}

// covers reports whether the messages of a fork before its beginning are indexed as those of its origin: not if the
// origin was deleted, and perhaps has a namesake.
func (x *Index) covers(f fork) bool {
	origin := x.list.get(f.Origin)
	return origin != nil && !origin.CreatedAt.After(f.At)
}

// isMisplaced reports whether a fork omits messages that the index does not have otherwise, or the reverse.
func (x *Index) isMisplaced(r *record) bool {
	return slices.ContainsFunc(r.Forks, func(f fork) bool { return f.Omitted != x.covers(f) })
}

// checkForks reads forks again that are misplaced since their origin came or went.
func (x *Index) checkForks(origin string) {
	for _, r := range x.list.forksOf(origin) {
		if x.isMisplaced(r) {
			x.queue.add(r.ContextName)
		}
	}
}
