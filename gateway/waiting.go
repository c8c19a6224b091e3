package gateway

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/reducer/transcript"
)

const (
	storedDelay   = time.Second     // until viewers see input that no worker has recorded
	noWorkerDelay = 5 * time.Second // until viewers see that no worker does the work of the context
	maxStoredText = 10_000          // bytes of a stored message or event that viewers see
)

// waiting is the work of a context that Temporal holds for a worker. While workers answer, viewers do
// not see it. It requires the lock of its room.
type waiting struct {
	newest   client.Waiting
	changed  chan struct{} // wakes watchWaiting, with a capacity of 1; nil: it does not run
	isAtOnce bool          // viewers see stored input without storedDelay
	recorded map[string]bool
	stored   []storedInput
	noWorker time.Time    // as in view
	view     *waitingView // nil: nothing
	silence  silence
}

// storedInput is an event and its entries.
type storedInput struct {
	clientEventID string
	items         []transcript.Item
}

// silence watches a running answer of which nothing arrives: if its worker died, the history does not
// show it.
type silence struct {
	timer    *time.Timer // nil: no answer runs
	began    time.Time
	probed   time.Time // result of the newest probe
	noWorker time.Time // result of two probes; zero: a worker has the answer
}

const maxProbeInterval = time.Minute

// waitingView is what viewers see. It is immutable.
type waitingView struct {
	// NoWorkerSince is since when the context waits for a worker, if for 5 s or more; absent: not known to wait.
	NoWorkerSince time.Time `json:"noWorkerSince,omitzero"`
	// Stored is input that Temporal has stored and that no worker has recorded after a second, oldest first, as the entries
	// that it will add to the document, with texts of at most 10,000 bytes, and notes instead of larger input; absent: none.
	Stored []transcript.Item `json:"stored,omitempty"`
}

// wait receives the newest work, and shows it if it waits for long.
func (r *room) wait(ctx context.Context, newest client.Waiting) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := &r.waiting
	if w.newest = newest; w.changed == nil && newest.IsZero() {
		return
	}
	if w.changed == nil {
		w.changed, w.recorded = make(chan struct{}, 1), map[string]bool{}
		go r.watchWaiting(ctx, w.changed)
		return
	}
	w.wake()
}

// showStored shows stored input at once: its sender found no worker.
func (r *room) showStored() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting.isAtOnce = true
	r.waiting.wake()
}

func (w *waiting) wake() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

func (r *room) watchWaiting(ctx context.Context, changed <-chan struct{}) {
	began := time.Now() // of the wait since
	var since time.Time // of the clock of Temporal
	for {
		newest, isAtOnce, isEnded := r.waitingNow()
		if isEnded {
			return
		}
		if !newest.Since.Equal(since) {
			since, began = newest.Since, time.Now()
		}
		storedIn, noWorkerIn := storedDelay-time.Since(began), noWorkerDelay-time.Since(began)
		if isAtOnce {
			storedIn = 0
		}
		next := noWorkerIn
		if storedIn > 0 {
			next = storedIn
		} else {
			r.showWaiting(ctx, newest, noWorkerIn <= 0)
		}
		var due <-chan time.Time
		if next > 0 && !(since.IsZero() && storedIn <= 0) {
			due = time.After(next)
		}
		select {
		case <-changed:
		case <-due:
		case <-ctx.Done():
			return
		}
	}
}

// waitingNow ends the watch if no work waits.
func (r *room) waitingNow() (newest client.Waiting, isAtOnce, isEnded bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	newest, isAtOnce = r.waiting.newest, r.waiting.isAtOnce
	if isEnded = newest.IsZero(); isEnded {
		seen := r.waiting.view
		r.waiting = waiting{silence: r.waiting.silence}
		if r.waiting.render(); seen != nil {
			r.wakeViewers()
		}
	}
	return newest, isAtOnce, isEnded
}

func (r *room) showWaiting(ctx context.Context, work client.Waiting, isLong bool) {
	var stored []storedInput
	since := work.Since
	if work.Input != nil {
		events := work.Input(ctx)
		if since.IsZero() && len(events) > 0 { // no workflow task waits, after a termination
			since = events[0].Timestamp
		}
		stored = foldStored(events)
	}
	r.publish(func() {
		w := &r.waiting
		if w.newest.IsZero() {
			return // the next iteration ends the watch
		}
		w.stored, w.noWorker = stored, time.Time{}
		if isLong {
			w.noWorker = work.Since
		}
		if w.render(); w.view != nil && r.status.status == "" {
			r.status.status, r.status.since = wire.StatusIdle, since // the log is empty
		}
	})
}

// heard receives an event or a delta, which shows that a worker works.
func (r *room) heard() {
	s := &r.waiting.silence
	s.began, s.probed = time.Now(), time.Time{}
	if !s.noWorker.IsZero() {
		s.noWorker = time.Time{}
		r.waiting.render()
	}
	if s.timer == nil && r.status.status == wire.StatusAnswering {
		s.timer = time.AfterFunc(noWorkerDelay, r.check)
	}
}

// probe asks Temporal about an answer of which nothing arrives. It shows that no worker has the answer if two
// probes find the same: right after an attempt, the next one waits for a moment, too.
func (r *room) probe(ctx context.Context, c Context) {
	r.mu.Lock()
	s := &r.waiting.silence
	if ctx.Err() != nil || r.status.status != wire.StatusAnswering {
		s.timer = nil
		r.mu.Unlock()
		return
	}
	began := s.began
	if rest := noWorkerDelay - time.Since(began); rest > 0 {
		s.timer.Reset(rest)
		r.mu.Unlock()
		return
	}
	r.mu.Unlock()
	since, err := c.UnattendedSince(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.began.Equal(began) && errors.Is(err, client.ErrUnanswered) { // nothing continues the answer
		s.timer, s.noWorker = nil, time.Time{}
		r.status.status, r.status.since, r.status.request = wire.StatusClosed, time.Now().UTC(), ""
		r.unanswered = r.last
		r.waiting.render()
		r.wakeViewers()
		return
	}
	if !s.began.Equal(began) || err != nil {
		s.timer.Reset(noWorkerDelay)
		return
	}
	was := s.noWorker
	if s.noWorker = since; !since.Equal(s.probed) {
		s.noWorker = time.Time{}
	}
	if !s.noWorker.Equal(was) {
		r.waiting.render()
		r.wakeViewers()
	}
	next := noWorkerDelay / 2
	if since.IsZero() || !s.noWorker.IsZero() { // the longer the silence, the rarer the probes
		next = min(max(next, time.Since(began)/2), maxProbeInterval)
	}
	s.probed = since
	s.timer.Reset(next)
}

// apply removes a stored input that the log has.
func (w *waiting) apply(e event.Event) {
	if w.changed == nil || e.ClientEventID == "" {
		return
	}
	w.recorded[e.ClientEventID] = true
	if slices.ContainsFunc(w.stored, w.isRecorded) {
		w.render()
	}
}

func (w *waiting) isRecorded(s storedInput) bool { return w.recorded[s.clientEventID] }

func (w *waiting) render() {
	w.stored = slices.DeleteFunc(w.stored, w.isRecorded)
	view := waitingView{NoWorkerSince: w.noWorker}
	for _, s := range w.stored {
		view.Stored = append(view.Stored, s.items...)
	}
	if view.NoWorkerSince.IsZero() {
		view.NoWorkerSince = w.silence.noWorker
	}
	if w.view = &view; view.NoWorkerSince.IsZero() && len(view.Stored) == 0 {
		w.view = nil
	}
}

// foldStored folds stored events like recorded ones, so that a message does not change its look.
func foldStored(events []event.Event) (stored []storedInput) {
	patcher := transcript.NewPatcher()
	for _, e := range events {
		if message, ok := e.Body.(event.UserMessage); ok && len(message.Content) > maxStoredText {
			message.Content = strings.ToValidUTF8(message.Content[:maxStoredText], "") + "…"
			e.Body = message
		}
		patcher.Apply(e)
		if _, ok := e.Body.(event.FileAttachment); ok {
			continue // the entry of the next message has it
		}
		items := patcher.Document().Entries
		patcher = transcript.NewPatcher()
		if len(encode(items)) > 4*maxStoredText { // JSON escapes a message
			note := event.New(event.Note{Kind: event.NoteSystem, Content: "Large " + string(e.Tag()) + ". It is shown when a worker has recorded it."})
			note.Timestamp = e.Timestamp
			patcher.Apply(note)
			items, patcher = patcher.Document().Entries, transcript.NewPatcher()
		}
		stored = append(stored, storedInput{e.ClientEventID, items})
	}
	return stored
}
