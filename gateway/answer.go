package gateway

import (
	"sort"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
)

type runningAnswer struct {
	newest   event.TextDelta
	text     strings.Builder // text and reasoning, in order of arrival
	runs     []run           // of answer text and of reasoning, in text
	number   int             // counts answers and their restarts; an offset is valid for one number
	ended    string          // newest request whose end is in the log
	answered attempt         // newest attempt whose answer is in the log
	sent     attempt         // newest attempt in the log
	frames   map[int][]byte  // of the text, by start offset
}

type attempt struct {
	requestID string
	number    int
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

func (a *runningAnswer) add(d event.TextDelta, isReasoning bool) {
	if d.RequestID == a.ended || d.RequestID == a.answered.requestID && d.Attempt <= a.answered.number {
		return
	}
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

func (a *runningAnswer) apply(e event.Event) {
	request := event.RequestOf(e.Body)
	switch body := e.Body.(type) {
	case event.LLMRequestStarted:
		a.sent = attempt{request, body.Attempt}
	case event.AssistantMessage:
		if request == "" {
			return
		}
		if a.answered = a.sent; a.sent.requestID != request {
			a.answered = attempt{request, a.newest.Attempt}
		}
		// Another answer can follow after tool calls.
		if a.newest.RequestID == request && a.newest.Attempt <= a.answered.number {
			a.clear()
		}
	case event.RequestEnd:
		if a.ended = request; a.newest.RequestID == request {
			a.clear()
		}
	}
}

func (a *runningAnswer) clear() {
	*a = runningAnswer{number: a.number, ended: a.ended, answered: a.answered, sent: a.sent}
}

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
