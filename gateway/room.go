package gateway

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

// rooms has the rooms of all contexts with viewers, and of those that lost their last
// viewer within linger. The room of an unknown name ends with its first lookup, or with
// the last stream that waits for the context.
type rooms struct {
	ctx    context.Context // parent of all rooms
	linger time.Duration
	names  *names
	ended  sync.WaitGroup

	mu     sync.Mutex
	open   map[string]*room
	closed bool
}

// enter returns the room of a context and keeps it open until leave is called. For a
// stream, the room waits for a context that does not exist. It fails on shutdown.
func (rs *rooms) enter(c Context, isStream bool) (r *room, leave func(), err error) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.closed || rs.ctx.Err() != nil {
		return nil, nil, errClosing
	}
	r, ok := rs.open[c.Name()]
	if !ok {
		ctx, cancel := context.WithCancel(rs.ctx)
		r = newRoom(c.Name())
		r.end = cancel
		r.empty = time.AfterFunc(rs.linger, func() { rs.leaveEmpty(r) })
		rs.open[c.Name()] = r
		rs.ended.Go(func() {
			defer cancel()
			err := r.follow(ctx, c, rs)
			rs.forget(r) // first, since viewers may reconnect at once
			r.publish(func() { r.err = err })
		})
	}
	r.empty.Stop()
	r.viewers++
	streams := 0
	if isStream {
		streams = 1
	}
	r.streams += streams
	return r, sync.OnceFunc(func() {
		rs.mu.Lock()
		defer rs.mu.Unlock()
		r.viewers--
		r.streams -= streams
		switch {
		case rs.open[r.name] != r:
		case r.isWaiting && r.streams == 0:
			rs.drop(r)
			r.end()
		case r.viewers == 0:
			r.empty.Reset(rs.linger)
		}
	}), nil
}

// await reports whether streams wait for the missing context of a room. If none do, the
// room ends.
func (rs *rooms) await(r *room) bool {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if r.isWaiting = r.streams > 0; !r.isWaiting {
		rs.drop(r)
	}
	return r.isWaiting
}

// exists marks the context of a room as existing.
func (rs *rooms) exists(r *room) {
	rs.names.note(r.name, nil)
	rs.mu.Lock()
	defer rs.mu.Unlock()
	r.isWaiting = false
}

// leaveEmpty ends a room unless a viewer has entered since its timer fired.
func (rs *rooms) leaveEmpty(r *room) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if r.viewers == 0 {
		rs.drop(r)
		r.end()
	}
}

// forget removes a room, so that the next viewer opens a new one.
func (rs *rooms) forget(r *room) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.drop(r)
}

// drop requires the lock.
func (rs *rooms) drop(r *room) {
	if rs.open[r.name] == r {
		delete(rs.open, r.name)
	}
}

// close prevents new rooms and waits until all have ended. Cancel ctx before.
func (rs *rooms) close() {
	rs.mu.Lock()
	rs.closed = true
	rs.mu.Unlock()
	rs.ended.Wait()
}

// room follows one context for all its viewers. It announces changes by closing a
// channel; each viewer then asks for what it has not seen. The cost of a change does not
// depend on the number of viewers.
type room struct {
	name string
	// epoch distinguishes the versions of this room from those of other rooms.
	epoch string

	// Guarded by the lock of rooms.
	viewers, streams int
	// isWaiting means that the context does not exist and streams wait for it.
	isWaiting bool
	empty     *time.Timer
	end       context.CancelFunc

	mu      sync.Mutex
	changed chan struct{} // nil: no viewer waits
	// present means that the log up to the opening of the room has been read.
	present bool
	// missing means that the context does not exist yet.
	missing bool
	err     error // why the room ended
	last    int   // counter of the newest event
	recent  recent
	answer  answerSoFar
	scene   scene
	doing   doing
}

func newRoom(name string) *room {
	return &room{name: name, epoch: rand.Text()[:10], scene: newScene()}
}

// follow follows the context until ctx is done, and returns the error for viewers.
func (r *room) follow(ctx context.Context, c Context, of *rooms) error {
	err := r.read(ctx, c, of)
	if ctx.Err() != nil {
		return errClosing // or no viewers are left
	}
	return err
}

func (r *room) read(ctx context.Context, c Context, of *rooms) error {
	options := client.FollowOptions{Deltas: true}
	for e, err := range c.Events(ctx, "") {
		if errors.Is(err, client.ErrNoContext) && of.await(r) {
			r.missing = true // read only after present is set
			var stop func()
			options.Delay, stop = of.names.wait(r.name)
			defer stop()
			break
		}
		if err != nil {
			return err
		}
		r.see(e)
	}
	r.publish(func() { r.present = true })
	if r.last > 0 {
		options.From = event.FormatID(r.name, r.last)
	}
	wasMissing := r.missing
	for e, err := range c.Follow(ctx, options) {
		if err != nil {
			return err
		}
		if wasMissing {
			wasMissing = false
			of.exists(r)
		}
		if n := event.Counter(e.ID); 0 < n && n <= r.last {
			return errReset
		}
		r.see(e)
	}
	return nil
}

// publish applies a change and wakes waiting viewers.
func (r *room) publish(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}

// more returns a channel that is closed on the next change. It requires the lock.
func (r *room) more() <-chan struct{} {
	if r.changed == nil {
		r.changed = make(chan struct{})
	}
	return r.changed
}

// see applies an event or a delta.
func (r *room) see(e event.Event) {
	var recorded []byte
	if e.Tag() != event.TagTextDelta {
		recorded = eventFrame(e)
	}
	r.publish(func() {
		r.missing = false
		r.scene.apply(e)
		if delta, ok := e.Body.(event.TextDelta); ok {
			r.answer.add(delta)
			return
		}
		r.answer.see(e)
		r.doing.see(e)
		r.last = event.Counter(e.ID)
		r.recent.add(r.last, recorded)
	})
}

func eventFrame(e event.Event) []byte {
	data, _ := e.MarshalJSON() // decoded from JSON before
	return frame(e.ID, "", data)
}

type recent struct {
	first  int // counter of the first frame
	frames [][]byte
	bytes  int
}

// Bounds of the buffer. Viewers that are further behind read the log.
const (
	recentEvents = 256
	recentBytes  = 4 << 20
)

func (n *recent) add(counter int, frame []byte) {
	if counter != n.first+len(n.frames) {
		*n = recent{first: counter} // without an archive, a log may begin at any event
	}
	n.frames = append(n.frames, frame)
	n.bytes += len(frame)
	for len(n.frames) > 1 && (len(n.frames) > recentEvents || n.bytes > recentBytes) {
		n.bytes -= len(n.frames[0])
		n.frames[0] = nil
		n.frames = n.frames[1:]
		n.first++
	}
}

// doing is the status of a context according to its log. The log does not show that a
// session was terminated from outside.
type doing struct {
	status  wire.Status
	since   time.Time
	request string // the running request
}

func (d *doing) see(e event.Event) {
	switch body := e.Body.(type) {
	case event.LLMRequestStarted:
		*d = doing{wire.StatusAnswering, e.Timestamp, body.RequestID}
	case event.SessionEnded:
		*d = doing{status: wire.StatusClosed, since: e.Timestamp}
	case event.SessionStarted:
		*d = doing{status: wire.StatusIdle, since: e.Timestamp}
	default:
		if d.status == "" || d.request != "" && d.request == endedBy(e) {
			*d = doing{status: wire.StatusIdle, since: e.Timestamp}
		}
	}
}

func (d doing) frame() []byte {
	return frame("", "status", encode(struct {
		Status wire.Status `json:"status"`
		Since  time.Time   `json:"since"`
	}{d.status, d.since}))
}

func endedBy(e event.Event) string {
	if e.Tag() == event.TagAssistantMessage || e.Tag().EndsRequest() {
		return event.RequestOf(e.Body)
	}
	return ""
}

type answerSoFar struct {
	newest event.TextDelta
	text   strings.Builder
	// life counts answers. A viewer discards what it has seen of another life.
	life   int
	over   string         // the request whose answer is in the log
	pieces map[int][]byte // frames of the text, by the offset they start at
}

func (a *answerSoFar) add(d event.TextDelta) {
	if d.RequestID == a.over {
		return
	}
	if d.Reset || d.RequestID != a.newest.RequestID || d.Attempt != a.newest.Attempt {
		a.text = strings.Builder{}
		a.life++
	}
	a.newest, a.pieces = d, nil
	a.text.WriteString(d.Delta)
}

// see discards the answer when it is in the log.
func (a *answerSoFar) see(e event.Event) {
	ended := endedBy(e)
	if ended != "" && ended == a.newest.RequestID {
		*a = answerSoFar{life: a.life, over: ended}
	}
}

// piece is the frame of the text from an offset, as one delta. At offset 0 it is a reset.
func (a *answerSoFar) piece(contextName string, offset int) []byte {
	if f, ok := a.pieces[offset]; ok {
		return f
	}
	d := a.newest
	d.Delta, d.Reset = a.text.String()[offset:], offset == 0
	e := event.New(d)
	e.ContextName = contextName
	data, _ := e.MarshalJSON() // a delta always encodes
	if a.pieces == nil {
		a.pieces = map[int][]byte{}
	}
	a.pieces[offset] = frame("", "", data)
	return a.pieces[offset]
}

// eventPlace is the position of a viewer of events: the counter of the newest event it
// has seen, and the offset in the running answer.
type eventPlace struct {
	last         int
	life, offset int
}

// eventNews is what a viewer of events has yet to see.
type eventNews struct {
	frames [][]byte
	at     eventPlace // after frames
	// begun means that the stream can begin.
	begun bool
	// behind means that the events up to at are no longer buffered: read them from the
	// log.
	behind bool
	more   <-chan struct{}
}

// eventsAfter returns what follows a position. The error is why the room ended.
func (r *room) eventsAfter(at eventPlace) (eventNews, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	news := eventNews{at: at, begun: r.present || r.last > 0}
	if at.last < r.last {
		if at.last+1 < r.recent.first && !r.present && r.err == nil {
			// Wait: otherwise all viewers would read the log that the room is reading.
			news.more = r.more()
			return news, nil
		}
		if at.last+1 < r.recent.first {
			news.behind, news.at.last = true, r.recent.first-1
			return news, nil
		}
		news.frames = append(news.frames, r.recent.frames[at.last+1-r.recent.first:]...)
		news.at.last = r.last
	}
	// A viewer that read the log may be ahead of the room, and has seen the end of the
	// answer that still runs here.
	if at.last <= r.last {
		// A reset without text is news to a viewer of another answer.
		begins := at.life != r.answer.life && r.answer.newest.RequestID != ""
		if at.life != r.answer.life {
			news.at.life, news.at.offset = r.answer.life, 0
		}
		if length := r.answer.text.Len(); begins || news.at.offset < length {
			news.frames = append(news.frames, r.answer.piece(r.name, news.at.offset))
			news.at.offset = length
		}
	}
	if len(news.frames) == 0 && r.err != nil {
		return news, r.err
	}
	news.more = r.more()
	if r.err != nil {
		news.more = closedChannel
	}
	return news, nil
}

// closedChannel is the more channel of news with more available already.
var closedChannel = func() chan struct{} { c := make(chan struct{}); close(c); return c }()
