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

// Viewers that are further behind read the log.
const (
	recentEvents = 256
	recentBytes  = 4 << 20
)

func (n *recent) add(counter int, e framed) {
	if counter != n.first+len(n.events) {
		*n = recent{first: counter} // without an archive, a log may begin at any event
	}
	n.events = append(n.events, e)
	n.bytes += len(e.frame)
	for len(n.events) > 1 && (len(n.events) > recentEvents || n.bytes > recentBytes) {
		n.bytes -= len(n.events[0].frame)
		n.events[0] = framed{}
		n.events = n.events[1:]
		n.first++
	}
}

// since requires a counter in the buffer or directly before it.
func (n *recent) since(counter int) []framed { return n.events[counter+1-n.first:] }
