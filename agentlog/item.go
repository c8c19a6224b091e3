package agentlog

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// item is an event on its way from a line to who reads the log.
type item struct {
	event.Event
	// tool names, for a call and for a result that names no call, the tool. Such a
	// result has no ToolCallID yet.
	tool string
}

// unknownTool is the name of a tool whose name nobody says.
const unknownTool = "unknown"

// extra are fields beside those of the body. What says nothing is left out.
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

// asked is what the user of the agent said. The agent answers it, and no model
// of ours.
func asked(text string, fields extra) item {
	return newItem(event.UserMessage{Content: text, TriggersTurn: new(false)}, fields)
}

// repeats knows what agents say more than once and viewers want to see once.
type repeats struct {
	// began is the newest beginning.
	began beginning
	// answer is the newest answer since the user spoke; isOver says that the agent
	// has said that it was the last.
	answer string
	isOver bool
}

// beginning is what an agent says of itself, once for each of its turns.
type beginning struct{ session, cwd, model string }

// begins tells of a beginning, unless it is the one before, and names a model that
// is not the one before.
func (r *repeats) begins(b beginning, fields extra) []item {
	last := r.began
	if b == last {
		return nil
	}
	r.began = b
	content := "init"
	if b.model != "" && b.model != last.model {
		content = "model " + b.model
		fields["model"] = b.model
	}
	fields["sessionId"], fields["cwd"] = b.session, b.cwd
	return []item{note(event.NoteSystem, content, fields)}
}

// asks tells of what the user said.
func (r *repeats) asks(text string, fields extra) []item {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	r.answer, r.isOver = "", false
	return []item{asked(text, fields)}
}

// answers tells of an answer, unless it is the last one come once more.
func (r *repeats) answers(text string, fields extra) []item {
	said := strings.TrimSpace(text)
	if said == "" || r.isOver && said == r.answer {
		return nil
	}
	r.answer = said
	return []item{newItem(event.AssistantMessage{Content: text}, fields)}
}

// ends tells of the answer that an agent ends with, unless it was the last one.
func (r *repeats) ends(text string, fields extra) []item {
	r.isOver = true
	return r.answers(text, fields)
}

// sourceTimestamp is the extra field with the time that the agent says.
const sourceTimestamp = "sourceTimestamp"

// timeOf is a time in RFC 3339, of milliseconds since 1970 or of such a time; ""
// when it is neither.
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

// usage says in words what work has taken.
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

// plainText is a JSON string as it is, and other JSON as its text.
func plainText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

// decode reads a line; its errors are in the words of JSON.
func decode(line []byte, into any) error {
	err := json.Unmarshal(line, into)
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return fmt.Errorf("%s: nobody expects a JSON %s here", wrong.Field, wrong.Value)
	}
	return err
}
