package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
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

// pairing orders each result after its call, as contexts require. It matches them by id
// within an agent session, since sessions may use the same ids.
type pairing struct {
	// open holds the calls without a result, oldest first.
	open []openCall
	// known holds all calls that a result may reference, by their id in the agent's log, and count
	// is their number.
	known map[string][]knownCall
	count int
	// waiting holds the results that precede their calls, oldest first; size is their length in bytes.
	waiting []item
	size    int
}

// knownCall is a call. session is the agent session, "" if unknown; id is unique among all sessions.
type knownCall struct{ session, id string }

// openCall has the fields of a call that its result needs.
type openCall struct {
	knownCall
	// logID is the id in the agent's log.
	logID, tool, clientEventID string
}

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
	open := openCall{
		knownCall: p.know(body.ToolCallID, call.session), logID: body.ToolCallID, tool: call.tool, clientEventID: call.ClientEventID,
	}
	p.close(open.id)
	p.open = append(p.open, open)
	body.ToolCallID = open.id
	call.Body = body
	out := []item{call.inSession(open.session)}
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

// know returns the call with an id in a session. If another session uses the id, the call gets
// a new id.
func (p *pairing) know(logID, session string) knownCall {
	if p.count >= maxKnownCalls {
		clear(p.known)
		p.count = len(p.open)
		for _, c := range p.open {
			p.known[c.logID] = append(p.known[c.logID], c.knownCall)
		}
	}
	sameID := p.known[logID]
	if n := slices.IndexFunc(sameID, func(c knownCall) bool { return isSession(c.session, session) }); n >= 0 {
		return sameID[n]
	}
	call := knownCall{session: session, id: logID}
	if len(sameID) > 0 {
		sum := sha256.Sum256([]byte(session + "\n" + logID))
		call.id = "call_" + hex.EncodeToString(sum[:16])
	}
	p.known[logID] = append(sameID, call)
	p.count++
	return call
}

// isSession reports whether two sessions are the same or one of them is unknown.
func isSession(a, b string) bool { return a == b || a == "" || b == "" }

func (p *pairing) addResult(result item, body event.ToolResult) []item {
	if call, ok := p.callOf(result); ok {
		p.close(call.id)
		body.ToolCallID = call.id
		result.Body = body
		return []item{result.inSession(call.session)}
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

// callOf returns the oldest open call that matches the result, else the newest known call with its id
// that is not of another session.
func (p *pairing) callOf(result item) (knownCall, bool) {
	if n := slices.IndexFunc(p.open, func(call openCall) bool { return answers(result, call) }); n >= 0 {
		return p.open[n].knownCall, true
	}
	for _, call := range slices.Backward(p.known[idOf(result)]) {
		if isSession(call.session, result.session) {
			return call, true
		}
	}
	return knownCall{}, false
}

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

func answers(result item, call openCall) bool {
	if !isSession(result.session, call.session) {
		return false
	}
	if id := idOf(result); id != "" {
		return id == call.logID
	}
	return result.tool == call.tool
}

func (i item) inSession(session string) item {
	i.session = session
	if data, err := encode(session); err == nil && session != "" {
		i.Extra = maps.Clone(i.Extra)
		if i.Extra == nil {
			i.Extra = map[string]json.RawMessage{}
		}
		i.Extra["sessionId"] = data
	}
	return i
}

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

func unknownOutcome(call openCall) item {
	e := event.New(event.UnknownResult(call.id))
	e.ClientEventID = call.clientEventID + "-unknown"
	return item{Event: e}.inSession(call.session)
}

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
	return warning.inSession(result.session)
}
