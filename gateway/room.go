package gateway

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"time"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer/usage"
)

// A change of a room closes a channel, and each viewer then requests the changes since its
// position. The cost of a change does not depend on the number of viewers.
type room struct {
	name  string
	epoch string // random part of transcript versions, so that a version of another room is unknown here

	// Guarded by rooms.mu.
	viewers, streams int
	isWaiting        bool // streams wait for a context that does not exist
	empty            *time.Timer
	end              context.CancelFunc

	mu         sync.Mutex
	changed    chan struct{} // nil: no viewer waits
	isLoaded   bool          // the log up to the opening of the room has been read
	isMissing  bool
	err        error // why the room ended
	last       int   // counter of the newest event
	recent     recent
	running    event.Running
	answer     runningAnswer
	deltas     int // received since the room opened
	progress   progress
	transcript transcriptState
	status     status
	unanswered int // counter of the newest event when a probe found that nothing continues the answer
	setup      Setup
	spent      *usage.Table
	waiting    waiting
	check      func() // calls probe
}

func newRoom(name string) *room {
	return &room{name: name, epoch: rand.Text()[:10], transcript: newTranscriptState(), spent: usage.New(usage.ByContext)}
}

// follow returns the error for viewers.
func (r *room) follow(ctx context.Context, c Context, registry *rooms) error {
	err := r.read(ctx, c, registry)
	if ctx.Err() != nil {
		return errClosing // or no viewers are left
	}
	return err
}

func (r *room) read(ctx context.Context, c Context, registry *rooms) error {
	r.check = func() { r.probe(ctx, c) }
	options := client.FollowOptions{Deltas: true, Waiting: func(w client.Waiting) { r.wait(ctx, w) }}
	var newest event.Event
	for e, err := range c.Events(ctx, "") {
		if errors.Is(err, client.ErrNoContext) && registry.keepWaiting(r) {
			r.isMissing = true // without the lock: viewers read it once isLoaded is set
			var stop func()
			options.Delay, stop = registry.names.wait(r.name)
			defer stop()
			break
		}
		if err != nil {
			return err
		}
		r.apply(e)
		newest = e
	}
	r.publish(func() { r.isLoaded = true })
	if r.last > 0 {
		// The newest event is read again: if it differs, the log was reset before Follow began.
		options.From, options.Running = newest.ParentID, r.running
	}
	wasMissing := r.isMissing
	for e, err := range c.Follow(ctx, options) {
		if err != nil {
			return err
		}
		if wasMissing {
			wasMissing = false
			registry.exists(r)
		}
		n := event.Counter(e.ID)
		if n > 0 && n == event.Counter(newest.ID) && e.Timestamp.Equal(newest.Timestamp) {
			newest = event.Event{}
			continue
		}
		if 0 < n && n <= r.last {
			return errReset
		}
		r.apply(e)
	}
	return nil
}

func (r *room) publish(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
	r.wakeViewers()
}

// wakeViewers requires the lock.
func (r *room) wakeViewers() {
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}

// nextChange requires the lock.
func (r *room) nextChange() <-chan struct{} {
	if r.changed == nil {
		r.changed = make(chan struct{})
	}
	return r.changed
}

func (r *room) apply(e event.Event) {
	newest := framed{event: e}
	delta, isReasoning, isDelta := deltaOf(e.Body)
	report, isProgress := e.Body.(event.ToolProgress)
	if !isDelta && !isProgress {
		newest.frame = eventFrame(e)
	}
	r.publish(func() {
		defer r.heard()
		r.isMissing = false
		if isDelta && r.running.Compare(delta.RequestID, delta.Attempt) != 0 {
			return
		}
		r.transcript.apply(e)
		switch {
		case isDelta:
			r.answer.add(delta, isReasoning)
			r.deltas++
			return
		case isProgress:
			r.progress.add(e, report)
			return
		}
		running := r.running.After(e)
		if !running.IsSameAttempt(r.running) {
			r.answer.clear()
		}
		r.running = running
		r.progress.apply(e)
		r.waiting.apply(e)
		r.setup.apply(e)
		r.spent.Add(e)
		r.status.apply(e, r.spent)
		r.last = event.Counter(e.ID)
		r.recent.add(r.last, newest)
	})
}

func eventFrame(e event.Event) []byte {
	data, _ := e.MarshalJSON() // an event decoded from JSON always encodes
	return frame(e.ID, "", data)
}

// awaitRead calls read, which returns a channel until the room has read the log.
func awaitRead[T any](ctx context.Context, read func() (T, <-chan struct{}, error)) (T, error) {
	for {
		value, changed, err := read()
		if err != nil || changed == nil {
			return value, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return value, ctx.Err()
		}
	}
}

// eventPosition is how far a viewer has read the events of a room.
type eventPosition struct {
	last     int // counter of the newest event
	answer   int // number of the running answer
	offset   int // in the text of that answer
	progress int // number of the newest progress of a tool call
	deltas   int // of the room; noDeltas before the first update
}

// noDeltas is the position of a viewer that has received nothing. Its first update contains earlier
// deltas because it is new, not because it is slow.
const noDeltas = -1

// sent records the metrics of an update that took a viewer from one number of deltas to another.
func (g *Gateway) sent(before, after int) {
	if before == noDeltas || before == after {
		return
	}
	g.metrics.DeltasSent.Add(1)
	g.metrics.DeltasCoalesced.Add(float64(after - before - 1))
}

type eventUpdate struct {
	events   []framed
	answer   *answerPart // nil: nothing new
	progress []framed
	at       eventPosition   // after these
	isReady  bool            // the stream can start
	isBehind bool            // events up to at are no longer buffered; read them from the log
	isAhead  bool            // the room has not read the event at the position
	isLost   bool            // the run was terminated, and nothing continues its answer
	changed  <-chan struct{} // closed when there are further changes
}

func (u *eventUpdate) isEmpty() bool { return len(u.events)+len(u.progress) == 0 && u.answer == nil }

// frames returns the update as server-sent events.
func (u *eventUpdate) frames() (frames [][]byte) {
	for _, e := range u.events {
		frames = append(frames, e.frame)
	}
	if u.answer != nil {
		frames = append(frames, u.answer.frame())
	}
	for _, e := range u.progress {
		frames = append(frames, e.frame)
	}
	return frames
}

// The error is why the room ended.
func (r *room) eventsAfter(at eventPosition) (eventUpdate, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	update := eventUpdate{at: at, isReady: r.isLoaded || r.last > 0 && r.last >= at.last, isAhead: r.isLoaded && at.last > r.last}
	if at.last < r.last {
		if at.last+1 < r.recent.first && !r.isLoaded && r.err == nil {
			// Otherwise each viewer would read the log that the room is reading.
			update.changed = r.nextChange()
			return update, nil
		}
		if at.last+1 < r.recent.first {
			update.isBehind, update.at.last = true, r.recent.first-1
			return update, nil
		}
		update.events = r.recent.since(at.last)
		update.at.last = r.last
	}
	// A viewer that read the log may be ahead of the room and have the end of the answer that is
	// still running here.
	if at.last <= r.last {
		// A new answer is sent as a reset even without text.
		isNew := at.answer != r.answer.number && r.answer.newest.RequestID != ""
		if at.answer != r.answer.number {
			update.at.answer, update.at.offset = r.answer.number, 0
		}
		if length := r.answer.text.Len(); isNew || update.at.offset < length {
			update.answer = r.answer.from(r.name, update.at.offset)
			update.at.offset = length
		}
		update.progress = r.progress.since(at.progress)
		update.at.progress = r.progress.number
	}
	update.at.deltas = r.deltas
	update.isLost = r.unanswered > 0 && r.unanswered == r.last
	if update.isEmpty() && r.err != nil {
		return update, r.err
	}
	update.changed = r.nextChange()
	if r.err != nil {
		update.changed = closedChannel
	}
	return update, nil
}

// between returns the events after a counter through a later one. Ok is false if the room does not buffer all of them.
func (r *room) between(after, through int) (events []framed, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil || through > r.last || after+1 < r.recent.first {
		return nil, false
	}
	return r.recent.since(after)[:through-after], true
}

var closedChannel = func() chan struct{} { c := make(chan struct{}); close(c); return c }()
