package llm

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/sashabaranov/go-openai"
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
	index     int // -1 without one
	id, name  string
	arguments strings.Builder
}

const noIndex = -1

func (r *callReader) read(delta *openai.ChatCompletionStreamChoiceDelta, onText func(string)) {
	for i := range delta.ToolCalls {
		piece := &delta.ToolCalls[i]
		r.add(indexOf(*piece), piece.ID, piece.Function.Name, piece.Function.Arguments, onText)
	}
	if f := delta.FunctionCall; f != nil {
		r.add(noIndex, "", f.Name, f.Arguments, onText)
	}
}

func indexOf(call openai.ToolCall) int {
	if call.Index == nil {
		return noIndex
	}
	return *call.Index
}

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

// find returns -1 for a new call.
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
		// Without a name, the piece continues the newest call: some servers send a new id with each piece,
		// but all send the name at the beginning of a call.
		return newest
	}
	call := r.calls[newest]
	isOther := id != "" && call.id != "" // with another id
	if isOther || !call.isRepeated(name, arguments) && (index == noIndex || call.isComplete() && arguments != "") {
		return -1
	}
	return newest
}

func (c *partialCall) isComplete() bool { return json.Valid([]byte(c.arguments.String())) }

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

func (r *callReader) complete(t *Target) []Call {
	taken := map[string]bool{}
	calls := make([]Call, len(r.calls))
	for i, call := range r.calls {
		id := call.id
		if id == "" || len(id) > maxCallID || !utf8.ValidString(id) || taken[id] {
			id = "call_" + rand.Text()
		}
		taken[id] = true
		calls[i] = Call{ID: id, Name: t.calledName(call.name), Arguments: repaired(call.arguments.String())}
	}
	return calls
}
