package gateway

import (
	"sort"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
)

type runningAnswer struct {
	newest event.TextDelta
	text   strings.Builder // text and reasoning, in order of arrival
	runs   []run           // of answer text and of reasoning, in text
	number int             // counts answers and their restarts; an offset is valid for one number
	frames map[int][]byte  // of the text, by start offset
}

// run is a part of the text of a [runningAnswer], up to the next run.
type run struct {
	start       int
	isReasoning bool
}

func deltaOf(body event.Body) (d event.TextDelta, isReasoning, ok bool) {
	switch body := body.(type) {
	case event.TextDelta:
		return body, false, true
	case event.ReasoningDelta:
		return event.TextDelta(body), true, true
	}
	return d, false, false
}

// add takes the deltas of the running attempt.
func (a *runningAnswer) add(d event.TextDelta, isReasoning bool) {
	if d.Reset || d.RequestID != a.newest.RequestID || d.Attempt != a.newest.Attempt {
		a.text, a.runs = strings.Builder{}, nil
		a.number++
	}
	if n := len(a.runs); d.Delta != "" && (n == 0 || a.runs[n-1].isReasoning != isReasoning) {
		a.runs = append(a.runs, run{a.text.Len(), isReasoning})
	}
	a.newest, a.frames = d, nil
	a.text.WriteString(d.Delta)
}

// clear ends an answer, whose text the log has or does not want.
func (a *runningAnswer) clear() { *a = runningAnswer{number: a.number} }

// frameFrom encodes the text from an offset, with one delta and one frame for each run. At offset
// 0, the first delta is a reset.
func (a *runningAnswer) frameFrom(contextName string, offset int) []byte {
	from := offset
	if f, ok := a.frames[from]; ok {
		return f
	}
	first := max(0, sort.Search(len(a.runs), func(i int) bool { return a.runs[i].start > offset })-1)
	var frames []byte
	for i, last := first, max(first, len(a.runs)-1); i <= last; i++ {
		end := a.text.Len()
		if i < last {
			end = a.runs[i+1].start
		}
		d := a.newest
		d.Index -= last - i
		d.Delta, d.Reset = a.text.String()[offset:end], offset == 0
		e := event.New(d)
		if len(a.runs) > 0 && a.runs[i].isReasoning {
			e = event.New(event.ReasoningDelta(d))
		}
		e.ContextName = contextName
		data, _ := e.MarshalJSON() // a delta always encodes
		frames = append(frames, frame("", "", data)...)
		offset = end
	}
	if a.frames == nil {
		a.frames = map[int][]byte{}
	}
	a.frames[from] = frames
	return frames
}
