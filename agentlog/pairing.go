package agentlog

import (
	"fmt"
	"slices"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// MaxOpenCalls is how many calls wait for their results, far fewer than a context
// lets wait. When there is one more, the oldest ends without.
const MaxOpenCalls = 200

// Bounds of what is remembered of tools. They are far beyond what agents do at a
// time.
const (
	// maxWaiting and maxWaitingBytes bound the results that wait for their calls.
	maxWaiting      = 1000
	maxWaitingBytes = 4 << 20
	// maxKnownCalls is how many calls may still get another result.
	maxKnownCalls = 2000
)

// pairing puts each result behind its call, since a context takes no other.
type pairing struct {
	// open are the calls without a result, oldest first, and known the ids of all
	// calls that a result may name.
	open  []openCall
	known map[string]bool
	// waiting are the results of no call yet, oldest first, and size is their
	// bytes.
	waiting []item
	size    int
}

// openCall is what a result needs of its call.
type openCall struct{ id, tool, clientEventID string }

// add takes the next item of the log and returns what can be told now.
func (p *pairing) add(i item) []item {
	switch body := i.Body.(type) {
	case event.ToolCall:
		return p.addCall(i, body)
	case event.ToolResult:
		return p.addResult(i, body)
	}
	return []item{i}
}

func (p *pairing) addCall(call item, body event.ToolCall) []item {
	if len(p.known) >= maxKnownCalls {
		clear(p.known)
		for _, c := range p.open {
			p.known[c.id] = true
		}
	}
	p.known[body.ToolCallID] = true
	p.close(body.ToolCallID)
	open := openCall{id: body.ToolCallID, tool: call.tool, clientEventID: call.ClientEventID}
	p.open = append(p.open, open)
	out := []item{call}
	if n := slices.IndexFunc(p.waiting, func(r item) bool { return answers(r, open) }); n >= 0 {
		result := p.waiting[n]
		p.forget(n)
		out = append(out, p.addResult(result, result.Body.(event.ToolResult))...)
	}
	if len(p.open) > MaxOpenCalls {
		out = append(out, unknownOutcome(p.open[0]))
		p.open = slices.Delete(p.open, 0, 1)
	}
	return out
}

func (p *pairing) addResult(result item, body event.ToolResult) []item {
	if body.ToolCallID == "" {
		if n := slices.IndexFunc(p.open, func(call openCall) bool { return answers(result, call) }); n >= 0 {
			body.ToolCallID = p.open[n].id
			result.Body = body
		}
	}
	if p.known[body.ToolCallID] {
		p.close(body.ToolCallID)
		return []item{result}
	}
	p.waiting = append(p.waiting, result)
	p.size += sizeOf(result)
	var out []item
	for len(p.waiting) > maxWaiting || p.size > maxWaitingBytes {
		out = append(out, withoutCall(p.waiting[0]))
		p.forget(0)
	}
	return out
}

// end returns what is left when the log has come to its end.
func (p *pairing) end() []item {
	var out []item
	for _, result := range p.waiting {
		out = append(out, withoutCall(result))
	}
	for _, call := range p.open {
		out = append(out, unknownOutcome(call))
	}
	return out
}

func (p *pairing) close(id string) {
	p.open = slices.DeleteFunc(p.open, func(call openCall) bool { return call.id == id })
}

func (p *pairing) forget(n int) {
	p.size -= sizeOf(p.waiting[n])
	p.waiting = slices.Delete(p.waiting, n, n+1)
}

// answers reports whether a result is that of a call: by its id, or, without one,
// by the tool.
func answers(result item, call openCall) bool {
	if id := idOf(result); id != "" {
		return id == call.id
	}
	return result.tool == call.tool
}

// idOf is the id of the call that an item is, or is the result of.
func idOf(i item) string {
	switch body := i.Body.(type) {
	case event.ToolCall:
		return body.ToolCallID
	case event.ToolResult:
		return body.ToolCallID
	}
	return ""
}

func sizeOf(result item) int {
	body := result.Body.(event.ToolResult)
	return len(body.Value) + len(body.Error)
}

// unknownOutcome stands in for the result of a call, in the words of a session
// that cannot wait either.
func unknownOutcome(call openCall) item {
	e := event.New(event.ToolResult{ToolCallID: call.id, Error: []byte(`"interrupted, outcome unknown"`), IsError: true})
	e.ClientEventID = call.clientEventID + "-unknown"
	return item{Event: e}
}

// withoutCall tells of a result whose call never came.
func withoutCall(result item) item {
	body := result.Body.(event.ToolResult)
	of := fmt.Sprintf("call %q", body.ToolCallID)
	if body.ToolCallID == "" {
		of = fmt.Sprintf("a call of tool %q", result.tool)
	}
	told := note(event.NoteWarning, "the result of "+of+" came without the call", extra{
		"value": body.Value, "error": body.Error, sourceTimestamp: result.Extra[sourceTimestamp],
	})
	told.ClientEventID = result.ClientEventID + "-dropped"
	return told
}
