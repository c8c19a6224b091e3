package gateway

import (
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// runningAnswer is the text of the running answer, from its deltas.
type runningAnswer struct {
	newest event.TextDelta
	text   strings.Builder
	// number counts answers, including those that start over; an offset belongs to one.
	number int
	ended  string         // the request whose answer is in the log
	frames map[int][]byte // of the text, by start offset
}

func (a *runningAnswer) add(d event.TextDelta) {
	if d.RequestID == a.ended {
		return
	}
	if d.Reset || d.RequestID != a.newest.RequestID || d.Attempt != a.newest.Attempt {
		a.text = strings.Builder{}
		a.number++
	}
	a.newest, a.frames = d, nil
	a.text.WriteString(d.Delta)
}

func (a *runningAnswer) apply(e event.Event) {
	request := endedRequest(e)
	if request != "" && request == a.newest.RequestID {
		*a = runningAnswer{number: a.number, ended: request}
	}
}

// frameFrom encodes the text from an offset as one delta, at offset 0 as a reset.
func (a *runningAnswer) frameFrom(contextName string, offset int) []byte {
	if f, ok := a.frames[offset]; ok {
		return f
	}
	d := a.newest
	d.Delta, d.Reset = a.text.String()[offset:], offset == 0
	e := event.New(d)
	e.ContextName = contextName
	data, _ := e.MarshalJSON() // a delta always encodes
	if a.frames == nil {
		a.frames = map[int][]byte{}
	}
	a.frames[offset] = frame("", "", data)
	return a.frames[offset]
}

// endedRequest returns the id of the request whose answer or end an event records, or "".
func endedRequest(e event.Event) string {
	if e.Tag() == event.TagAssistantMessage || e.Tag().EndsRequest() {
		return event.RequestOf(e.Body)
	}
	return ""
}
