package gateway

import (
	"sort"
	"strings"
	"sync"

	"github.com/seed-9ed7edd4/chronicle/event"
)

type runningAnswer struct {
	newest event.TextDelta
	text   strings.Builder // text and reasoning, in order of arrival
	runs   []run           // of answer text and of reasoning, in text
	number int             // counts answers and their restarts; an offset is valid for one number
	parts  map[int]*answerPart
}

// run is a part of the text of a [runningAnswer], up to the next run.
type run struct {
	start       int
	before      int // bytes of its kind that precede it
	isReasoning bool
}

// answerPart is the text from an offset on. All viewers at that offset share it.
type answerPart struct {
	deltas []Item // at least one
	once   sync.Once
	frames []byte
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
		next := run{start: a.text.Len(), isReasoning: isReasoning}
		if n > 1 { // kinds alternate
			next.before = a.runs[n-2].before + a.runs[n-1].start - a.runs[n-2].start
		}
		a.runs = append(a.runs, next)
	}
	a.newest, a.parts = d, nil
	a.text.WriteString(d.Delta)
}

// clear ends an answer, whose text the log has or does not want.
func (a *runningAnswer) clear() { *a = runningAnswer{number: a.number} }

// from returns the text from an offset, with one delta for each run. At offset 0, the first delta is a reset.
func (a *runningAnswer) from(contextName string, offset int) *answerPart {
	if part, ok := a.parts[offset]; ok {
		return part
	}
	part, from := new(answerPart), offset
	first := max(0, sort.Search(len(a.runs), func(i int) bool { return a.runs[i].start > offset })-1)
	for i, last := first, max(first, len(a.runs)-1); i <= last; i++ {
		end := a.text.Len()
		if i < last {
			end = a.runs[i+1].start
		}
		d, in := a.newest, run{}
		if len(a.runs) > 0 {
			in = a.runs[i]
		}
		d.Index -= last - i
		d.Delta, d.Reset = a.text.String()[offset:end], offset == 0
		item := Item{Event: event.New(d), Offset: in.before + offset - in.start}
		if in.isReasoning {
			item.Event = event.New(event.ReasoningDelta(d))
		}
		item.Event.ContextName = contextName
		part.deltas = append(part.deltas, item)
		offset = end
	}
	if a.parts == nil {
		a.parts = map[int]*answerPart{}
	}
	a.parts[from] = part
	return part
}

// frame encodes the deltas, one frame for each.
func (p *answerPart) frame() []byte {
	p.once.Do(func() {
		for _, d := range p.deltas {
			data, _ := d.Event.MarshalJSON() // a delta always encodes
			p.frames = append(p.frames, frame("", "", data)...)
		}
	})
	return p.frames
}
