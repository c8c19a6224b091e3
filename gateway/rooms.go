package gateway

import (
	"context"
	"sync"
	"time"
)

// rooms holds the open rooms. A room ends when it has had no viewers for the duration linger. The
// room of an unknown name ends after its first lookup, or with the last stream that waits for the context.
type rooms struct {
	ctx    context.Context // parent of all rooms
	linger time.Duration
	names  *names
	ended  sync.WaitGroup

	mu     sync.Mutex
	open   map[string]*room
	closed bool
}

// enter keeps the room open until leave is called. For a stream, the room waits for a context that
// does not exist. On shutdown, enter returns errClosing.
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

// find returns the room of a context; nil: none is open.
func (rs *rooms) find(name string) *room {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return rs.open[name]
}

// showStored shows the viewers of a context that it has stored input.
func (rs *rooms) showStored(name string) {
	if r := rs.find(name); r != nil {
		r.showStored()
	}
}

// keepWaiting ends the room of a missing context unless a stream waits.
func (rs *rooms) keepWaiting(r *room) bool {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if r.isWaiting = r.streams > 0; !r.isWaiting {
		rs.drop(r)
	}
	return r.isWaiting
}

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

// endEmpty ends the room of a context that has no viewers now, without linger.
func (rs *rooms) endEmpty(name string) {
	if r := rs.find(name); r != nil {
		rs.leaveEmpty(r)
	}
}

// forget makes the next viewer open a new room.
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

// close waits until all rooms have ended. Cancel ctx before.
func (rs *rooms) close() {
	rs.mu.Lock()
	rs.closed = true
	rs.mu.Unlock()
	rs.ended.Wait()
}
