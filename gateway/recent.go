package gateway

import "github.com/seed-9ed7edd4/chronicle/event"

// recent buffers the newest events of a log.
type recent struct {
	first  int // counter of the first event
	events []framed
	bytes  int
}

// framed is an event and its frame, which all viewers share.
type framed struct {
	event event.Event
	frame []byte
}

// recentBytes bounds the frames; the events occupy about as much again. Viewers that are further behind read the log.
const recentBytes = 4 << 20

func (n *recent) add(counter int, e framed) {
	if counter != n.first+len(n.events) {
		*n = recent{first: counter} // without an archive, a log may begin at any event
	}
	n.events = append(n.events, e)
	n.bytes += len(e.frame)
	for len(n.events) > 1 && n.bytes > recentBytes {
		n.bytes -= len(n.events[0].frame)
		n.events = n.events[1:]
		n.first++
	}
}

// since requires a counter in the buffer or directly before it. The result does not change.
func (n *recent) since(counter int) []framed { return n.events[counter+1-n.first:] }
