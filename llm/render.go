package llm

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"strings"

	"github.com/sashabaranov/go-openai"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

const (
	emptyResult     = "(empty)"
	assistantBegins = "(The conversation begins with the assistant.)"
	userEnds        = "(Continue.)"
	noAnswer        = "(interrupted)"
)

type conversation struct {
	messages   []renderedMessage
	media      mediaSet // content parts besides text
	isSeen     bool     // an answer follows the latest part of these kinds
	mediaBytes int      // JSON of the messages with such parts, without their text parts
}

type renderedMessage struct {
	json       []byte
	mediaParts int // content parts besides text
	mediaBytes int // of the JSON if it has such parts, without its text parts
}

func (m renderedMessage) textSize() int { return len(m.json) - m.mediaBytes }

// render renders any messages so that the provider accepts them: at most one system message, which
// comes first; no empty message; one result for each tool call after its message. ctx bounds reading
// attachments. It renders all messages of each request, which takes 3 ms for 2,000 messages of 400 bytes.
func (t *Target) render(ctx context.Context, messages []reducer.Message) (conversation, error) {
	r := rendering{target: t, messages: messages, out: make([]message, 0, len(messages)+1)}
	r.calls, r.isPaired = t.pair(messages)
	for i := range messages {
		r.add(r.message(ctx, i))
	}
	system := r.system()
	if t.quirks.userLast && (len(r.out) > 0 && isAnswer(r.out[len(r.out)-1]) || len(r.out) == 0 && system != "") {
		r.out = append(r.out, message{role: openai.ChatMessageRoleUser, text: userEnds})
	}
	r.front(system)
	return r.conversation()
}

type rendering struct {
	target   *Target
	messages []reducer.Message
	calls    [][]call  // of each message
	isPaired []bool    // whether each message is the result of a call
	out      []message // so far
}

func (r *rendering) message(ctx context.Context, i int) []message {
	switch m := r.messages[i]; {
	case m.Role == reducer.RoleSystem:
		return nil // see front
	case m.Role == reducer.RoleAssistant:
		return r.answer(i)
	case m.Role == reducer.RoleTool && r.isPaired[i]:
		return nil // rendered with its call
	case m.Role == reducer.RoleTool:
		return textOf(openai.ChatMessageRoleUser, fmt.Sprintf("[Result of a tool call that is not part of this conversation: %s]", resultText(m)))
	default:
		return r.target.userMessage(ctx, m)
	}
}

// answer renders nothing for an answer with neither text nor calls, even if the model reasoned.
func (r *rendering) answer(i int) []message {
	m := &r.messages[i]
	back := r.target.returned(m)
	switch {
	case len(m.ToolCalls) > 0 && (areRefused(m, event.ContentCalls) || r.target.areCallsText(back)):
		return r.callsAsText(i)
	case len(m.ToolCalls) > 0:
		return r.calling(i, back)
	}
	out := textOf(openai.ChatMessageRoleAssistant, m.Content)
	if len(out) > 0 {
		out[0].state = r.withReasoning(i, back)
	}
	return out
}

func areRefused(m *reducer.Message, content event.Content) bool {
	_, ok := m.Refused[content]
	return ok
}

// If calls since the previous user message are sent with their reasoning, each later answer must have
// reasoning, too. Partial answers and answers of other models have no reasoning, so they get an empty one.
func (r *rendering) withReasoning(i int, back returned) returned {
	if !r.target.quirks.needsReasoning || back.ReasoningContent != nil {
		return back
	}
	for i--; i >= 0 && r.messages[i].Role != reducer.RoleUser; i-- {
		if m := &r.messages[i]; len(m.ToolCalls) > 0 && r.target.returned(m).ReasoningContent != nil {
			back.ReasoningContent = json.RawMessage(`""`)
			break
		}
	}
	return back
}

func textOf(role, text string) []message {
	if isBlank(text) {
		return nil
	}
	return []message{{role: role, text: text}}
}

func (t *Target) userMessage(ctx context.Context, m reducer.Message) []message {
	var blocks []block
	if !isBlank(m.Content) {
		blocks = append(blocks, textBlock(m.Content))
	}
	for _, a := range m.Attachments {
		blocks = append(blocks, t.attachment(ctx, a, m.Refused))
	}
	if len(blocks) == 0 {
		return nil
	}
	return []message{messageOf(blocks)}
}

func (r *rendering) calling(i int, back returned) []message {
	m := r.messages[i]
	called := message{role: openai.ChatMessageRoleAssistant, state: back}
	if !isBlank(m.Content) {
		called.text = m.Content
	}
	results := r.results(i)
	ids := make([]string, len(m.ToolCalls))
	out := make([]message, 1, 1+len(ids))
	for n, call := range m.ToolCalls {
		ids[n] = r.target.quirks.tools.wireID(call.ID, r.calls[i][n])
		called.toolCalls = append(called.toolCalls, openai.ToolCall{
			ID:       ids[n],
			Type:     openai.ToolTypeFunction,
			Function: openai.FunctionCall{Name: r.target.quirks.tools.toolName(call.Name), Arguments: wireArguments(call.Arguments)},
		})
		out = append(out, message{
			role: openai.ChatMessageRoleTool, toolCallID: ids[n], text: results[n],
		})
	}
	out[0] = called
	return out
}

func (r *rendering) callsAsText(i int) []message {
	m := r.messages[i]
	var said []string
	if !isBlank(m.Content) {
		said = append(said, m.Content)
	}
	results := r.results(i)
	for n, call := range m.ToolCalls {
		said = append(said, fmt.Sprintf("[Called the tool %s with %s]", wireName(call.Name), wireArguments(call.Arguments)))
		results[n] = fmt.Sprintf("[The tool %s returned: %s]", wireName(call.Name), results[n])
	}
	return []message{
		{role: openai.ChatMessageRoleAssistant, text: strings.Join(said, "\n\n"), state: r.withReasoning(i, returned{})},
		{role: openai.ChatMessageRoleUser, text: strings.Join(results, "\n\n")},
	}
}

func (r *rendering) results(i int) []string {
	texts := make([]string, len(r.calls[i]))
	for n, c := range r.calls[i] {
		texts[n] = event.OutcomeUnknown
		if c.result >= 0 {
			texts[n] = resultText(r.messages[c.result])
		}
	}
	return texts
}

func resultText(m reducer.Message) string {
	if isBlank(m.Content) {
		return emptyResult
	}
	return m.Content
}

// add appends messages. It merges the first one if roles must alternate, and inserts an answer where one must follow a
// result.
func (r *rendering) add(messages []message) {
	last := len(r.out) - 1
	switch {
	case len(messages) == 0 || last < 0:
	case r.isMerged(messages[0]):
		r.out[last] = merge(r.out[last], messages[0])
		messages = messages[1:]
	case r.target.quirks.tools.noUserAfterResult && messages[0].role == openai.ChatMessageRoleUser && r.out[last].role == openai.ChatMessageRoleTool:
		r.out = append(r.out, message{role: openai.ChatMessageRoleAssistant, text: noAnswer})
	}
	r.out = append(r.out, messages...)
}

func (r *rendering) isMerged(m message) bool {
	return r.target.quirks.alternate && isMergeable(r.out[len(r.out)-1], m)
}

func isMergeable(a, b message) bool {
	return a.role == b.role && a.role != openai.ChatMessageRoleTool && len(a.toolCalls) == 0
}

func (r *rendering) system() string {
	var texts []string
	for i := range r.messages {
		if m := &r.messages[i]; m.Role == reducer.RoleSystem && !isBlank(m.Content) {
			texts = append(texts, m.Content)
		}
	}
	return strings.Join(texts, "\n\n")
}

// front inserts the system message in the form that the provider accepts.
func (r *rendering) front(system string) {
	isUserFirst := len(r.out) > 0 && r.out[0].role == openai.ChatMessageRoleUser
	var front []message
	switch {
	case system != "" && !r.target.quirks.noSystem:
		front = append(front, message{role: openai.ChatMessageRoleSystem, text: system})
	case system != "" && isUserFirst:
		r.out[0] = merge(message{role: openai.ChatMessageRoleUser, text: system}, r.out[0])
	case system != "":
		front = append(front, message{role: openai.ChatMessageRoleUser, text: system})
		isUserFirst = true
	}
	if r.target.quirks.alternate && !isUserFirst && len(r.out) > 0 {
		front = append(front, message{role: openai.ChatMessageRoleUser, text: assistantBegins})
	}
	r.out = append(front, r.out...)
}

func (r *rendering) conversation() (c conversation, err error) {
	c.messages = make([]renderedMessage, 0, len(r.out))
	for _, m := range r.out {
		rendered := renderedMessage{}
		if rendered.json, err = m.encode(); err != nil {
			return conversation{}, err
		}
		if media := mediaIn(m); media != 0 {
			c.media, c.isSeen = c.media|media, false
			rendered.mediaBytes = len(rendered.json)
			for _, p := range m.parts {
				if p.Type == "text" {
					rendered.mediaBytes -= len(p.Text)
				} else {
					rendered.mediaParts++
				}
			}
		} else if isAnswer(m) {
			c.isSeen = true
		}
		c.mediaBytes += rendered.mediaBytes
		c.messages = append(c.messages, rendered)
	}
	return c, nil
}

var (
	goodID    = regexp.MustCompile(`^[A-Za-z0-9_-]{1,40}$`)
	shortID   = regexp.MustCompile(`^[A-Za-z0-9]{9}$`)
	notInName = regexp.MustCompile(`[^A-Za-z0-9_-]`)
)

// wireID returns the id that the provider gave, in its form, or else one of at most 40 characters (OpenAI) of letters,
// digits, _ and - (Anthropic), or of nine characters, each a letter or a digit (Mistral), unique in the conversation
// (Anthropic). Results get the id of their call.
func (q toolQuirks) wireID(id string, c call) string {
	isExact := c.exact != "" && (!q.uniqueIDs || c.earlier == 0 && goodID.MatchString(c.exact)) && (!q.shortIDs || shortID.MatchString(c.exact))
	switch {
	case isExact:
		return c.exact
	case c.earlier > 0:
		id = fmt.Sprintf("%s#%d", id, c.earlier)
	case q.shortIDs && shortID.MatchString(id), !q.shortIDs && goodID.MatchString(id):
		return id
	}
	sum := sha256.Sum256([]byte(id))
	if q.shortIDs {
		n := new(big.Int).SetBytes(sum[:])
		return fmt.Sprintf("%09s", n.Text(62))[:9]
	}
	return hex.EncodeToString(sum[:16])
}

// wireName returns 1 to 64 letters, digits, _ and -. Some providers also restrict the first character: see toolName.
func wireName(name string) string {
	name = notInName.ReplaceAllString(name, "_")
	return cmp.Or(name[:min(len(name), 64)], "tool")
}

// wireArguments returns a JSON object, which some providers require.
func wireArguments(arguments string) string {
	switch input := valueOf([]byte(arguments)); {
	case input.isObject():
		return arguments
	case string(input) == "null" || isBlank(arguments):
		return "{}"
	case input == nil:
		return string(encoded(map[string]string{"input": arguments}))
	default:
		return string(encoded(map[string]json.RawMessage{"input": json.RawMessage(input)}))
	}
}

func isBlank(text string) bool { return strings.TrimSpace(text) == "" }
