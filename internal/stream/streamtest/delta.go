package streamtest

import "github.com/seed-9ed7edd4/chronicle/internal/stream"

// Delta returns the delta to show for a message, on a server to which only the running attempt publishes.
func Delta(sub *stream.Subscription, m stream.Message) (d stream.Delta, ok bool) {
	if d, ok = sub.Decode(m); !ok {
		return d, false
	}
	return sub.Pass(d)
}
