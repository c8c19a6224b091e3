package agent

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
)

type codexLine struct {
	Type      string          `json:"type"`
	Timestamp json.RawMessage `json:"timestamp"`
	Payload   json.RawMessage `json:"payload"`
}

// codexItem is a payload, or a line without one.
type codexItem struct {
	Type string `json:"type"`
	ID   string `json:"id"`

	// lines "session_meta" and "turn_context"
	Cwd       string `json:"cwd"`
	Model     string `json:"model"`
	Timestamp string `json:"timestamp"`

	// type "message"
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"` // a text or []block
	// type "reasoning"
	Summary []block `json:"summary"`
	// types that end with "_call"
	Name      string          `json:"name"`
	Namespace string          `json:"namespace"`
	CallID    string          `json:"call_id"`
	Arguments json.RawMessage `json:"arguments"` // JSON in a text
	Input     json.RawMessage `json:"input"`
	Action    json.RawMessage `json:"action"`
	Status    string          `json:"status"`
	// types that end with "_output"
	Output json.RawMessage `json:"output"` // a text or []block

	// lines "event_msg" and "compacted"
	Message string `json:"message"`
	Reason  string `json:"reason"`
}

type codex struct {
	repeats repeats
	// items and notices are the messages that occurred in one form: most occur as a response_item and as
	// an event_msg.
	items, notices []string
}

func (c *codex) parse(line []byte) (session string, items []item, err error) {
	var l codexLine
	if err := decode(line, &l); err != nil {
		return "", nil, err
	}
	var i codexItem
	if l.Payload == nil {
		l.Payload = line
	}
	if err := decode(l.Payload, &i); err != nil {
		return "", nil, err
	}
	fields := extra{sourceTimestamp: timeOf(l.Timestamp)}
	switch l.Type {
	case "session_meta":
		return i.ID, []item{c.start(i, i.ID, fields)}, nil
	case "turn_context":
		return "", []item{c.start(i, c.repeats.last.session, fields)}, nil
	case "event_msg":
		return "", c.notice(i, fields), nil
	case "compacted":
		return "", noted(event.NoteSystem)(cmp.Or(i.Message, "Conversation compacted"), fields), nil
	case "":
		if i.ID != "" && i.Timestamp != "" {
			return i.ID, []item{c.start(i, i.ID, fields)}, nil
		}
		return "", []item{skip(i.Type)}, nil
	}
	return "", c.item(i, fields), nil
}

func (c *codex) start(i codexItem, session string, fields extra) item {
	last := c.repeats.last
	return c.repeats.initialized(initLine{session, cmp.Or(i.Cwd, last.cwd), cmp.Or(i.Model, last.model)}, fields)
}

// item converts a response_item.
func (c *codex) item(i codexItem, fields extra) []item {
	kind, isCall := strings.CutSuffix(i.Type, "_call")
	switch {
	case i.Type == "message":
		fields["messageId"] = i.ID
		return c.message(i, fields)
	case i.Type == "reasoning":
		var texts []string
		for _, b := range i.Summary {
			texts = append(texts, b.Text)
		}
		return noted(event.NoteThinking)(strings.Join(texts, "\n\n"), fields)
	case isCall:
		return i.call(kind, fields)
	case strings.HasSuffix(i.Type, "_output") && i.CallID != "":
		return []item{newItem(event.ToolResult{ToolCallID: i.CallID, Value: joinTexts(i.Output, "input_text")}, fields)}
	}
	return []item{skip(i.Type)}
}

// imageTag matches the texts that Codex writes before and after an image.
var imageTag = regexp.MustCompile(`^</?image( [^<>]*)?>$`)

func (c *codex) message(i codexItem, fields extra) []item {
	blocks, err := blocksOf(i.Content)
	if err != nil {
		return []item{{problem: err.Error()}}
	}
	var texts []string
	var skipped []item
	for _, b := range blocks {
		switch b.Type {
		case "input_text", "output_text", "text":
			if len(blocks) == 1 || !imageTag.MatchString(b.Text) {
				texts = append(texts, b.Text)
			}
		default:
			skipped = append(skipped, skip("content/"+b.Type))
		}
	}
	say := noted(event.NoteSystem) // roles developer and system
	switch i.Role {
	case "user":
		// Each text is a message of its own: the agent adds some to that of the user.
		var out []item
		for _, text := range texts {
			out = append(out, c.once(text, &c.items, &c.notices, c.repeats.userSaid, fields)...)
		}
		return append(out, skipped...)
	case "assistant":
		say = func(text string, fields extra) []item {
			return c.once(text, &c.items, &c.notices, c.repeats.assistantSaid, fields)
		}
	}
	return append(say(strings.Join(texts, "\n"), fields), skipped...)
}

// notice converts an event_msg. Most of them repeat what is in a response_item.
func (c *codex) notice(i codexItem, fields extra) []item {
	switch i.Type {
	case "user_message":
		return c.once(i.Message, &c.notices, &c.items, c.repeats.userSaid, fields)
	case "agent_message":
		return c.once(i.Message, &c.notices, &c.items, c.repeats.assistantSaid, fields)
	case "error", "stream_error":
		return noted(event.NoteError)(i.Message, fields)
	case "turn_aborted":
		return noted(event.NoteSystem)(strings.TrimSpace("turn aborted "+i.Reason), fields)
	}
	return []item{skip("event_msg/" + i.Type)}
}

// maxForms bounds the messages that occurred in one form.
const maxForms = 32

// once says a text unless it occurred in the other form.
func (c *codex) once(text string, form, other *[]string, say func(string, extra) []item, fields extra) []item {
	said, _ := unwrap(text, c.repeats.wrappers)
	said = strings.Join(strings.Fields(said), " ")
	if said == "" {
		return say(text, fields)
	}
	if n := slices.Index(*other, said); n >= 0 {
		*other = slices.Delete(*other, n, n+1)
		return []item{{}}
	}
	*form = append(*form, said)
	*form = (*form)[max(0, len(*form)-maxForms):]
	return say(text, fields)
}

// call converts a call. Those without a call_id, like web_search_call, ran at the provider and are complete.
func (i codexItem) call(kind string, fields extra) []item {
	name := cmp.Or(i.Name, kind)
	if i.Namespace != "" {
		name = i.Namespace + "." + name
	}
	call := newItem(event.ToolCall{ToolCallID: cmp.Or(i.CallID, i.ID), ToolName: name, Parameters: i.parameters()}, fields)
	if i.CallID != "" {
		return []item{call}
	}
	call.tool = name
	status, _ := encode(i.Status)
	result := newItem(event.ToolResult{ToolCallID: i.ID, Value: status}, fields)
	result.tool = name
	return []item{call, result}
}

// parameters returns the arguments of a call as JSON.
func (i codexItem) parameters() json.RawMessage {
	for _, raw := range []json.RawMessage{i.Arguments, i.Input, i.Action} {
		var text string
		switch {
		case !isSet(raw):
		case json.Unmarshal(raw, &text) == nil && isObject([]byte(text)) && json.Valid([]byte(text)):
			return json.RawMessage(text)
		default:
			return raw
		}
	}
	return nil
}
