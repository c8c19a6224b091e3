package agent

import (
	"fmt"
	"slices"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// MaxOpenCalls is the maximum number of calls that wait for a result, far below the
// limit of a context. One more call ends the oldest without its result.
const MaxOpenCalls = 200

// Memory bounds, far above what agents do concurrently.
const (
	// maxWaiting and maxWaitingBytes bound the results that precede their calls.
	maxWaiting      = 1000
	maxWaitingBytes = 4 << 20
	// maxKnownCalls bounds the calls that can still get another result.
	maxKnownCalls = 2000
)

// pairing orders each result after its call, as contexts require.
type pairing struct {
	// open holds the calls without a result, oldest first; known holds the ids of
	// all calls that a result may reference.
	open  []openCall
	known map[string]bool
	// waiting holds the results whose calls were not seen yet, oldest first; size
	// is their total length in bytes.
	waiting []item
	size    int
}

// openCall has the fields of a call that its result needs.
type openCall struct{ id, tool, clientEventID string }

// add takes the next item of the log and returns the items that are now in order.
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

// end returns the remaining items at the end of the log.
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

// answers reports whether a result belongs to a call: by id, or by tool if the result
// has no id.
func answers(result item, call openCall) bool {
	if id := idOf(result); id != "" {
		return id == call.id
	}
	return result.tool == call.tool
}

// idOf returns the call id of a call or a result.
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

// unknownOutcome is the placeholder result of a call.
func unknownOutcome(call openCall) item {
	e := event.New(event.UnknownResult(call.id))
	e.ClientEventID = call.clientEventID + "-unknown"
	return item{Event: e}
}

// withoutCall returns a warning about a result whose call never came.
func withoutCall(result item) item {
	body := result.Body.(event.ToolResult)
	of := fmt.Sprintf("call %q", body.ToolCallID)
	if body.ToolCallID == "" {
		of = fmt.Sprintf("a call to tool %q", result.tool)
	}
	warning := note(event.NoteWarning, "the result of "+of+" has no matching call", extra{
		"value": body.Value, "error": body.Error, sourceTimestamp: result.Extra[sourceTimestamp],
	})
	warning.ClientEventID = result.ClientEventID + "-dropped"
	return warning
}
