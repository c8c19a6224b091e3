package stream

import "github.com/seed-9ed7edd4/chronicle/event"

// Fence exports fence.
type Fence struct{ fence fence }

func (f *Fence) Pass(d event.TextDelta) (out event.TextDelta, ok, gap bool) {
	passed, ok, gap := f.fence.pass(Delta{TextDelta: d})
	return passed.TextDelta, ok, gap
}

var Token = token

func (c *Conn) Subject(contextName, kind string) string { return c.subject(contextName, kind) }

var Dial = dialer{}.Dial
