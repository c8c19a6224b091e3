package gateway

import (
	"slices"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// progress holds the newest progress of each running tool call, in order of arrival.
type progress struct {
	calls  []callProgress
	number int // number of the newest progress
}

type callProgress struct {
	event.ToolProgress
	number int
	framed
}

// add ignores calls that do not run.
func (p *progress) add(e event.Event, body event.ToolProgress) {
	i := slices.IndexFunc(p.calls, func(c callProgress) bool {
		return c.RequestID == body.RequestID && c.ToolCallID == body.ToolCallID
	})
	if i < 0 || p.calls[i].number > 0 && body.Index <= p.calls[i].Index {
		return
	}
	p.calls = slices.Delete(p.calls, i, i+1)
	data, _ := e.MarshalJSON() // progress always encodes
	p.number++
	p.calls = append(p.calls, callProgress{body, p.number, framed{e, frame("", "", data)}})
}

// apply adds the calls that a request makes, and removes those that have ended.
func (p *progress) apply(e event.Event) {
	if call, ok := e.Body.(event.ToolCall); ok && call.RequestID != "" {
		p.calls = append(p.calls, callProgress{ToolProgress: event.ToolProgress{RequestID: call.RequestID, ToolCallID: call.ToolCallID}})
		return
	}
	if len(p.calls) == 0 {
		return
	}
	result, _ := e.Body.(event.ToolResult)
	ended := ""
	if e.Tag().EndsRequest() {
		ended = event.RequestOf(e.Body)
	}
	p.calls = slices.DeleteFunc(p.calls, func(c callProgress) bool {
		return c.ToolCallID == result.ToolCallID || c.RequestID == ended
	})
}

func (p *progress) since(number int) (newer []framed) {
	for _, c := range p.calls {
		if c.number > number {
			newer = append(newer, c.framed)
		}
	}
	return newer
}
