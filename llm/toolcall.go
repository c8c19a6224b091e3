package llm

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/sashabaranov/go-openai"
)

const (
	// MaxCalls is the maximum number of tool calls of an answer.
	MaxCalls = 128
	// MaxArgumentBytes is the maximum size of the arguments of all calls of an answer.
	MaxArgumentBytes = 768 << 10
	// maxCallID is the maximum length of the id of a call, in bytes.
	maxCallID = 64
)

// callReader assembles the tool calls of an answer from its deltas.
//
// Most servers number the calls, and send the id and the name with the first piece of a call
// only. Others omit the index or the id, number all calls 0, repeat the id and the name in every
// piece, or send a complete call again at the end.
type callReader struct {
	calls []*partialCall
	size  int // of the names and arguments
}

// partialCall is a call that may be incomplete.
type partialCall struct {
	index     int // -1 without one
	id, name  string
	arguments strings.Builder
}

// noIndex is the index of a call without one.
const noIndex = -1

// read adds the pieces of calls in a delta. onText receives the text of each piece.
func (r *callReader) read(delta *openai.ChatCompletionStreamChoiceDelta, onText func(string)) {
	for i := range delta.ToolCalls {
		piece := &delta.ToolCalls[i]
		index := noIndex
		if piece.Index != nil {
			index = *piece.Index
		}
		r.add(index, piece.ID, piece.Function.Name, piece.Function.Arguments, onText)
	}
	if f := delta.FunctionCall; f != nil {
		r.add(noIndex, "", f.Name, f.Arguments, onText)
	}
}

// add adds a piece of a call and returns the position of the call.
func (r *callReader) add(index int, id, name, arguments string, onText func(string)) int {
	at := r.find(index, id, name, arguments)
	if at < 0 {
		at = len(r.calls)
		r.calls = append(r.calls, &partialCall{index: index, id: id})
	}
	call := r.calls[at]
	if call.id == "" {
		call.id = id
	}
	added := ""
	if name != call.name && call.arguments.Len() == 0 {
		call.name += name
		added = name
	}
	if !call.isRepeated(name, arguments) {
		call.arguments.WriteString(arguments)
		added += arguments
	}
	if added != "" {
		r.size += len(added)
		onText(added)
	}
	return at
}

// find returns the position of the call that a piece belongs to, -1 for a new one.
func (r *callReader) find(index int, id, name, arguments string) int {
	newest := -1
	for at := len(r.calls) - 1; at >= 0; at-- {
		call := r.calls[at]
		if index != noIndex && call.index != noIndex && index != call.index {
			continue
		}
		if id != "" && id == call.id {
			return at
		}
		newest = max(newest, at)
	}
	if newest < 0 || name == "" {
		// Some servers send a new id with each piece, but every server sends a new call with its name.
		return newest
	}
	call := r.calls[newest]
	isOther := id != "" && call.id != "" // with another id
	if isOther || !call.isRepeated(name, arguments) && (index == noIndex || call.isComplete() && arguments != "") {
		return -1
	}
	return newest
}

// isComplete reports whether the arguments are a JSON value.
func (c *partialCall) isComplete() bool { return json.Valid([]byte(c.arguments.String())) }

// isRepeated reports whether a piece is the whole call again.
func (c *partialCall) isRepeated(name, arguments string) bool {
	return name != "" && name == c.name && arguments == c.arguments.String() && c.isComplete()
}

// tooLarge returns why the calls exceed the bounds; "" if they do not.
func (r *callReader) tooLarge() string {
	switch {
	case len(r.calls) > MaxCalls:
		return fmt.Sprintf("the answer calls more than %d tools", MaxCalls)
	case r.size > MaxArgumentBytes:
		return fmt.Sprintf("the arguments of the tool calls exceed %d KiB", MaxArgumentBytes>>10)
	}
	return ""
}

// name returns the name of the first call; "" without one.
func (r *callReader) name() string {
	for _, call := range r.calls {
		if call.name != "" {
			return call.name
		}
	}
	return ""
}

// complete returns the calls of a complete answer.
func (r *callReader) complete(t *Target) []Call {
	taken := map[string]bool{}
	calls := make([]Call, len(r.calls))
	for i, call := range r.calls {
		id := call.id
		if id == "" || len(id) > maxCallID || !utf8.ValidString(id) || taken[id] {
			id = "call_" + rand.Text()
		}
		taken[id] = true
		calls[i] = Call{ID: id, Name: t.calledName(call.name), Arguments: strings.ToValidUTF8(call.arguments.String(), "\uFFFD")}
	}
	return calls
}
