package stream

import "github.com/seed-9ed7edd4/chronicle/event"

// Fence exports fence.
type Fence struct{ fence fence }

func (f *Fence) Pass(d event.TextDelta) (out event.TextDelta, ok, gap bool) { return f.fence.pass(d) }

var Token = token

var Dial = dialer{}.Dial
