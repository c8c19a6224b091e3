package transcript_test

import (
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer/transcript"
)

// steps counts the answers with tool calls of the request that event i ends, the summaries, and the
// other attempts with usage, which failed.
func (o oracle) steps(i int) (steps, summaries, failed int) {
	o.eachAttempt(i, func(ended event.LLMAttemptEnded) {
		switch ended.Outcome {
		case event.AttemptToolCalls:
			steps++
		case event.AttemptCompacted:
			summaries++
		default:
			failed++
		}
	})
	return steps, summaries, failed
}

// duration formats as entries do.
func duration(ms int64) string { return (time.Duration(ms) * time.Millisecond).String() }

// withSteps returns the event with the sums of the request.
func (o oracle) withSteps(i int) event.Event {
	e := o.events[i]
	var total event.Usage
	var durationMs int64
	switch body := e.Body.(type) {
	case event.LLMRequestCompleted:
		total = body.Usage
	case event.LLMRequestInterrupted:
		total = body.Usage
	case event.LLMRequestFailed:
		total = body.Usage
	}
	isPriced := total.CostMicros != nil
	cost, attempts := int64(0), 0
	if isPriced {
		cost = *total.CostMicros
	}
	if e.Tag() != event.TagLLMRequestCompleted && total.InputTokens+total.OutputTokens == 0 {
		isPriced = true // it was not charged
	}
	o.eachAttempt(i, func(step event.LLMAttemptEnded) {
		attempts++
		total.InputTokens += step.InputTokens
		if step.Outcome == event.AttemptToolCalls {
			durationMs += step.DurationMs
		}
		if isPriced = isPriced && step.CostMicros != nil; isPriced {
			cost += *step.CostMicros
		}
	})
	if attempts > 0 {
		total.CostMicros = nil
		if isPriced {
			total.CostMicros = new(cost)
		}
	}
	switch body := e.Body.(type) {
	case event.LLMRequestCompleted:
		body.Usage, body.DurationMs = total, body.DurationMs+durationMs
		e.Body = body
	case event.LLMRequestInterrupted:
		body.Usage = total
		e.Body = body
	case event.LLMRequestFailed:
		body.Usage = total
		e.Body = body
	}
	return e
}

// eachAttempt visits the ends of the attempts with tool calls or usage since an event of another
// request.
func (o oracle) eachAttempt(i int, visit func(event.LLMAttemptEnded)) {
	requestID := event.RequestOf(o.events[i].Body)
	var steps []event.LLMAttemptEnded
	current := ""
	for _, e := range o.events[:i] {
		switch body := e.Body.(type) {
		case event.LLMRequestStarted:
			if body.RequestID != current {
				current, steps = body.RequestID, nil
			}
		case event.LLMAttemptEnded:
			if body.RequestID == current && (body.Outcome == event.AttemptToolCalls || body.InputTokens > 0) {
				steps = append(steps, body)
			}
		case event.LLMRequestFellBack:
			if body.RequestID == current && body.InputTokens > 0 {
				steps = append(steps, event.LLMAttemptEnded{Outcome: event.AttemptFailed, Usage: body.Usage})
			}
		}
	}
	if current == requestID {
		for _, step := range steps {
			visit(step)
		}
	}
}

// streams returns the streaming entries by the index of their first delta.
func (o oracle) streams() map[int]transcript.Entry {
	var running event.Running
	next := 0
	first, text := map[transcript.Kind]int{}, map[transcript.Kind]string{}
	for i, e := range o.events {
		d, kind, ok := deltaOf(e.Body)
		if !ok {
			before := running
			if running = running.After(e); !running.IsSameAttempt(before) {
				clear(text)
				next = 0
			}
			continue
		}
		switch {
		case running.Compare(d.RequestID, d.Attempt) != 0:
			continue
		case d.Reset && d.Index >= next-1:
			clear(text)
		case d.Index != next:
			continue
		}
		if text[kind] == "" {
			first[kind] = i
		}
		text[kind] += d.Delta
		next = d.Index + 1
	}
	entries := map[int]transcript.Entry{}
	for kind, chunk := range text {
		if chunk != "" {
			entry := ofType(kind, "")
			entry.Chunks = []string{chunk}
			entries[first[kind]] = entry
		}
	}
	return entries
}
