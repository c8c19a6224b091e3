package gateway

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/session"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

// rooms are those of the contexts that have viewers, or had some a moment ago. A room
// for an unknown name ends with its first lookup, or with the last stream that waits for
// the context.
type rooms struct {
	ctx    context.Context // bounds all of them
	linger time.Duration
	names  *names
	ended  sync.WaitGroup

	mu     sync.Mutex
	open   map[string]*room
	closed bool
}

// enter returns the room of a context, which stays until the viewer has left. The
// room of a viewer with isStream waits for a context that does not exist. The error is
// that no room opens any more.
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
			rs.forget(r) // before its viewers are told, who may come back at once
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

// await reports whether streams wait for the context of a room, which does not exist.
// Without any, the room ends.
func (rs *rooms) await(r *room) bool {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if r.isWaiting = r.streams > 0; !r.isWaiting {
		rs.drop(r)
	}
	return r.isWaiting
}

// exists ends the waiting of a room.
func (rs *rooms) exists(r *room) {
	rs.names.note(r.name, nil)
	rs.mu.Lock()
	defer rs.mu.Unlock()
	r.isWaiting = false
}

// leaveEmpty ends a room, unless a viewer came at the last moment.
func (rs *rooms) leaveEmpty(r *room) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if r.viewers == 0 {
		rs.drop(r)
		r.end()
	}
}

// forget lets the next viewer have another room.
func (rs *rooms) forget(r *room) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.drop(r)
}

// drop is called with the lock held.
func (rs *rooms) drop(r *room) {
	if rs.open[r.name] == r {
		delete(rs.open, r.name)
	}
}

// close lets no room open any more, and waits until those that ctx has ended follow
// no context.
func (rs *rooms) close() {
	rs.mu.Lock()
	rs.closed = true
	rs.mu.Unlock()
	rs.ended.Wait()
}

// room follows one context for all its viewers. What changes is published by
// closing a channel: each viewer then asks for what it has not seen, when it is
// ready to, and how many there are is nothing to the room.
type room struct {
	name string
	// epoch tells the versions of this room from those of another life.
	epoch string

	// Of rooms.
	viewers, streams int
	// isWaiting says that the context does not exist and streams wait for it.
	isWaiting bool
	empty     *time.Timer
	end       context.CancelFunc

	mu      sync.Mutex
	changed chan struct{} // nil: nobody waits for a change
	// present says that what was there when the room began has been read.
	present bool
	// missing says that there is no such context yet.
	missing bool
	err     error // why the room has ended
	last    int   // counter of the newest event
	recent  recent
	answer  answerSoFar
	scene   scene
	doing   doing
}

func newRoom(name string) *room {
	return &room{name: name, epoch: rand.Text()[:10], scene: newScene()}
}

// follow follows the context until ctx is done, and returns what viewers are told then.
func (r *room) follow(ctx context.Context, c Context, of *rooms) error {
	err := r.read(ctx, c, of)
	if ctx.Err() != nil {
		return errClosing // or there is nobody to be told
	}
	return err
}

func (r *room) read(ctx context.Context, c Context, of *rooms) error {
	options := session.FollowOptions{Deltas: true}
	for e, err := range c.Events(ctx, "") {
		if errors.Is(err, session.ErrNoContext) && of.await(r) {
			r.missing = true // nobody looks before it is present
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

// publish changes what viewers may look at, and tells those that wait.
func (r *room) publish(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}

// more is closed when there is something new. It is called with the lock held.
func (r *room) more() <-chan struct{} {
	if r.changed == nil {
		r.changed = make(chan struct{})
	}
	return r.changed
}

// see takes in an event or a delta.
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

// eventFrame is an event as it is streamed.
func eventFrame(e event.Event) []byte {
	data, _ := e.MarshalJSON() // it was read from JSON
	return frame(e.ID, "", data)
}

// recent are the newest events, as frames.
type recent struct {
	first  int // counter of the first of them
	frames [][]byte
	bytes  int
}

// How much is kept for viewers that are a little behind. Those that are further
// behind read the log.
const (
	recentEvents = 256
	recentBytes  = 4 << 20
)

func (n *recent) add(counter int, frame []byte) {
	if counter != n.first+len(n.frames) {
		*n = recent{first: counter} // without an archive, a log may begin anywhere
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

// doing is what a context is doing, by its log. Of a session that was ended by hand
// the log does not tell.
type doing struct {
	status  wire.Status
	since   time.Time
	request string // that is under way
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

// endedBy is the request that has ended when the log has an event; "" for none.
func endedBy(e event.Event) string {
	if e.Tag() == event.TagAssistantMessage || e.Tag().EndsRequest() {
		return event.RequestOf(e.Body)
	}
	return ""
}

// answerSoFar is the text of the answer that is on its way.
type answerSoFar struct {
	newest event.TextDelta // of the text
	text   strings.Builder
	// life counts the beginnings of answers: of another life, nothing that a viewer
	// has seen is valid.
	life   int
	over   string         // the request whose answer is in the log
	pieces map[int][]byte // frames of the text from an offset on
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

// see ends the answer when the log has it.
func (a *answerSoFar) see(e event.Event) {
	ended := endedBy(e)
	if ended != "" && ended == a.newest.RequestID {
		*a = answerSoFar{life: a.life, over: ended}
	}
}

// piece is the frame of the text from an offset on, as one delta; from the
// beginning it is a Reset.
func (a *answerSoFar) piece(contextName string, offset int) []byte {
	if f, ok := a.pieces[offset]; ok {
		return f
	}
	d := a.newest
	d.Delta, d.Reset = a.text.String()[offset:], offset == 0
	e := event.New(d)
	e.ContextName = contextName
	data, _ := e.MarshalJSON() // it has JSON
	if a.pieces == nil {
		a.pieces = map[int][]byte{}
	}
	a.pieces[offset] = frame("", "", data)
	return a.pieces[offset]
}

// eventPlace is how far a viewer of events has seen: the counter of the newest
// event, and so many bytes of an answer.
type eventPlace struct {
	last         int
	life, offset int
}

// eventNews is what a viewer of events has not seen.
type eventNews struct {
	frames [][]byte
	at     eventPlace // behind them
	// begun says that the room has something to say.
	begun bool
	// behind says that the log has what comes next, and the room only what comes
	// behind at.
	behind bool
	more   <-chan struct{}
}

// eventsAfter returns what comes after a place. The error is why the room has ended.
func (r *room) eventsAfter(at eventPlace) (eventNews, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	news := eventNews{at: at, begun: r.present || r.last > 0}
	if at.last < r.last {
		if at.last+1 < r.recent.first && !r.present && r.err == nil {
			// All who came with the room would read what it is about to have.
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
	// Who read the log may be ahead of the room, and has seen the end of an answer
	// that is on its way here.
	if at.last <= r.last {
		// To whom another answer was shown, even an empty beginning is news.
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

// closedChannel says that there is more at once.
var closedChannel = func() chan struct{} { c := make(chan struct{}); close(c); return c }()
