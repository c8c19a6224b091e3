package agent

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
)

type item struct {
	event.Event
	// tool identifies the tool of a call or a result in formats whose results may lack an id; "" in others.
	// A result without an id gets its ToolCallID from the oldest open call of the same tool.
	tool string
	// session is the agent session of a call or a result, "" if unknown.
	session string
	// problem is the missing part of a call or a result, "" if none. Without a Body, the item
	// could not be converted.
	problem string
	// skipped is the kind of a line or a block that becomes no event; the Body is nil.
	skipped string
}

// A parser returns an item without a Body for what a repetition omits, because the id of an event
// has its index.

// unknownTool is the name of a tool without one.
const unknownTool = "unknown"

const namelessCall = "tool call without a tool name"

// extra holds fields besides the body's. Zero values are omitted.
type extra map[string]any

func newItem(body event.Body, fields extra) item {
	i := item{Event: event.New(body)}
	for name, value := range fields {
		switch data, err := encode(value); {
		case err != nil, string(data) == `""`, string(data) == "null", string(data) == "0":
		case i.Extra == nil:
			i.Extra = map[string]json.RawMessage{name: data}
		default:
			i.Extra[name] = data
		}
	}
	return i
}

func note(kind event.NoteKind, content string, fields extra) item {
	return newItem(event.Note{Kind: kind, Content: content}, fields)
}

func skip(kind string) item { return item{skipped: cmp.Or(kind, "without a type")} }

// noted returns a function that converts a text to a note.
func noted(kind event.NoteKind) func(string, extra) []item {
	return func(text string, fields extra) []item {
		if strings.TrimSpace(text) == "" {
			return []item{{}}
		}
		return []item{note(kind, text, fields)}
	}
}

// userMessage returns a user message that triggers no turn, because the agent answers it.
func userMessage(text string, fields extra) item {
	return newItem(event.UserMessage{Content: text, TriggersTurn: new(false)}, fields)
}

// repeats detects lines that agents write to their logs more than once.
type repeats struct {
	wrappers []wrapper // of the agent
	// last is the newest init line.
	last initLine
	// answer is the newest answer since the last user message; finished means that the agent called it
	// final.
	answer   string
	finished bool
}

// initLine identifies an agent session; agents repeat it for each turn.
type initLine struct{ session, cwd, model string }

func (r *repeats) initialized(b initLine, fields extra) item {
	last := r.last
	if b == last {
		return item{}
	}
	r.last = b
	content := "init"
	if b.model != "" && b.model != last.model {
		content = "model " + b.model
		fields["model"] = b.model
	}
	fields["sessionId"], fields["cwd"] = b.session, b.cwd
	return note(event.NoteSystem, content, fields)
}

// userSaid returns a note of what the agent added to the message, and the message.
func (r *repeats) userSaid(text string, fields extra) []item {
	said, added := unwrap(text, r.wrappers)
	out := append(noted(event.NoteSystem)(added, fields), item{})
	if strings.TrimSpace(said) != "" {
		r.answer, r.finished = "", false
		out[1] = userMessage(said, fields)
	}
	return out
}

func (r *repeats) assistantSaid(text string, fields extra) []item {
	said := strings.TrimSpace(text)
	if said == "" || r.finished && said == r.answer {
		return []item{{}}
	}
	r.answer = said
	return []item{newItem(event.AssistantMessage{Content: text}, fields)}
}

func (r *repeats) finalAnswer(text string, fields extra) []item {
	r.finished = true
	return r.assistantSaid(text, fields)
}

const sourceTimestamp = "sourceTimestamp"

// timeOf converts milliseconds since 1970 or an RFC 3339 time to RFC 3339. Else it returns "".
func timeOf(raw json.RawMessage) string {
	var ms int64
	var t time.Time
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return ""
	case json.Unmarshal(raw, &ms) == nil:
		t = time.UnixMilli(ms)
	case json.Unmarshal(raw, &t) != nil:
		return ""
	}
	if t = t.UTC(); t.Year() < 0 || t.Year() > 9999 {
		return ""
	}
	return t.Format(time.RFC3339Nano)
}

func usage(turns int, durationMs int64, more ...string) string {
	var parts []string
	if turns > 0 {
		parts = append(parts, plural(turns, "turn"))
	}
	if durationMs > 0 {
		parts = append(parts, (time.Duration(durationMs) * time.Millisecond).String())
	}
	return strings.Join(append(parts, more...), ", ")
}

func plural(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

func plainText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

// decode unmarshals JSON. A field of an unexpected type keeps its zero value.
func decode(data []byte, into any) error {
	err := json.Unmarshal(data, into)
	if errors.As(err, new(*json.UnmarshalTypeError)) {
		return nil
	}
	return err
}
