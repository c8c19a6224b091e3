package llm

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// Bounds of the tool calls of an answer.
const (
	MaxCalls         = 128
	MaxArgumentBytes = 768 << 10 // the names and arguments of all calls
	maxCallID        = 64        // bytes
)

// callReader assembles the tool calls of an answer. Most servers number the calls, and send id and
// name with the first piece of a call only. Others omit the index or the id, number all calls 0,
// repeat id and name in every piece, or send a complete call again at the end.
type callReader struct {
	calls []*partialCall
	size  int // of the names and arguments
}

type partialCall struct {
	index     int // noIndex without one
	id, name  string
	arguments strings.Builder
	extra     value // extra_content
}

const noIndex = math.MinInt

func (r *callReader) read(c *choice, onText func(string)) {
	for i, piece := range c.Delta.ToolCalls {
		index := noIndex
		if piece.Index != nil {
			index = *piece.Index
		}
		call := r.add(index, piece.ID, piece.Function.Name, piece.Function.Arguments, onText)
		if extra := c.callExtra[i]; call != nil && extra.isObject() {
			call.extra = bytes.Clone(extra)
		}
	}
	if f := c.Delta.FunctionCall; f != nil {
		r.add(noIndex, "", f.Name, f.Arguments, onText)
	}
}

// add returns nil if there are too many calls.
func (r *callReader) add(index int, id, name, arguments string, onText func(string)) *partialCall {
	if len(r.calls) > MaxCalls {
		return nil
	}
	call := r.find(index, id, name, arguments)
	if call == nil {
		call = &partialCall{index: index, id: id}
		r.calls = append(r.calls, call)
	}
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
	return call
}

// find returns nil for a new call.
func (r *callReader) find(index int, id, name, arguments string) *partialCall {
	var newest *partialCall
	for _, call := range slices.Backward(r.calls) {
		if index != noIndex && call.index != noIndex && index != call.index {
			continue
		}
		if id != "" && id == call.id {
			return call
		}
		if newest == nil {
			newest = call
		}
	}
	if newest == nil || name == "" {
		// Without a name, the piece continues the newest call: some servers send a new id with each piece,
		// but all send the name at the beginning of a call.
		return newest
	}
	isOther := id != "" && newest.id != "" // with another id
	if isOther || !newest.isRepeated(name, arguments) && (index == noIndex || newest.isComplete() && arguments != "") {
		return nil
	}
	return newest
}

func (c *partialCall) isComplete() bool { return json.Valid([]byte(c.arguments.String())) }

// areObjects reports whether no call was cut off.
func (r *callReader) areObjects() bool {
	return !slices.ContainsFunc(r.calls, func(c *partialCall) bool { return !valueOf([]byte(c.arguments.String())).isObject() })
}

// isRepeated reports whether a piece is the whole call again.
func (c *partialCall) isRepeated(name, arguments string) bool {
	return name != "" && name == c.name && arguments == c.arguments.String() && c.isComplete()
}

func (r *callReader) tooLarge() string {
	switch {
	case len(r.calls) > MaxCalls:
		return fmt.Sprintf("the answer has more than %d tool calls", MaxCalls)
	case r.size > MaxArgumentBytes:
		return fmt.Sprintf("the arguments of the tool calls exceed %d KiB", MaxArgumentBytes>>10)
	}
	return ""
}

func (r *callReader) name() string {
	for _, call := range r.calls {
		if call.name != "" {
			return call.name
		}
	}
	return ""
}

// complete returns the calls, and the extra_content and the id of each as the server sent them.
func (r *callReader) complete(t *Target, quirks *quirkSet) (calls []reducer.ToolCall, extras []value, ids []string) {
	taken := map[string]bool{}
	given := map[reducer.ToolCall]bool{} // with the server's id
	for _, partial := range r.calls {
		arguments := argumentsIn(t.scrub(repaired(partial.arguments.String(), quirks)), quirks)
		id := t.scrub(partial.id)
		call := reducer.ToolCall{ID: id, Name: t.calledName(t.scrub(partial.name)), Arguments: arguments}
		if given[call] {
			quirks.add(quirkRepeatedCall)
			continue
		}
		given[call] = call.ID != ""
		if id == "" || len(id) > maxCallID || !utf8.ValidString(id) || taken[id] {
			quirks.add(quirkCallID)
			call.ID = "call_" + rand.Text()
		}
		taken[call.ID] = true
		calls, extras, ids = append(calls, call), append(extras, partial.extra), append(ids, strings.ToValidUTF8(id, "\uFFFD"))
	}
	return calls, extras, ids
}

// argumentsIn returns the object in the arguments of a call. Some servers encode it twice, some send {} before it, and
// some send it twice. Other arguments are returned unchanged, for the error that the model gets.
func argumentsIn(arguments string, quirks *quirkSet) string {
	whole := valueOf([]byte(arguments))
	switch {
	case whole.isObject():
		return arguments
	case string(whole) == "null":
		return ""
	case whole.isString():
		if inner := argumentsIn(whole.text(), new(quirkSet)); valueOf([]byte(inner)).isObject() {
			quirks.add(quirkEncodedTwice)
			return inner
		}
	case whole != nil:
		return arguments
	}
	var object string
	decoder := json.NewDecoder(strings.NewReader(arguments))
	for {
		var next json.RawMessage
		if err := decoder.Decode(&next); errors.Is(err, io.EOF) && object != "" {
			quirks.add(quirkMoreArguments)
			return object
		} else if err != nil || !value(next).isObject() || object != "" && object != "{}" && object != string(next) {
			return arguments
		}
		object = string(next)
	}
}
