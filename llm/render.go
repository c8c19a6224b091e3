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
	"slices"
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
	// json is the messages, separated by commas, in pieces to concatenate. It must not be modified.
	json   [][]byte
	media  mediaSet // content parts besides text
	isSeen bool     // an answer follows the latest part of these kinds
	tokens int      // 0: not counted

	cached     cachedMessages
	shown      [][]byte // the messages of the field json that are not in cached, each after a comma
	mediaParts int      // content parts of shown besides text
	mediaBytes int      // size of the JSON of the messages with such parts, without their text parts
}

// render renders any messages so that the provider accepts them: at most one system message, which
// comes first; no empty message; one result for each tool call after its message. ctx bounds reading
// attachments.
func (t *Target) render(ctx context.Context, messages []reducer.Message, counts bool) (conversation, error) {
	r := rendering{target: t, rendered: t.renderings.take(t.renderingKey())}
	next := r.resume(messages)
	if counts {
		r.startCounting()
	}
	r.renew(ctx, next)
	for i := next; i < len(messages); i++ {
		r.renderMessage(ctx, i)
	}
	if t.quirks.userLast && r.lacksUser() {
		r.out = append(r.out, message{role: openai.ChatMessageRoleUser, text: userEnds})
	}
	// The last group stays open, since the next message may be merged into it.
	r.show(len(r.body))
	if r.err != nil {
		return conversation{}, r.err
	}
	c := r.conversation()
	t.renderings.put(t.renderingKey(), r.rendered) // from here on, a concurrent request may change it
	return c, nil
}

type rendering struct {
	rendered
	target   *Target
	isPaired []bool      // whether each message is the result of a call
	out      []message   // the current group
	shown    []insertion // JSON between the parts of body
	media    mediaSet
	isSeen   bool
	counts   bool
	tokens   int // so far, if counts is set
	err      error

	mediaParts, mediaBytes int // see conversation
}

// insertion is JSON that is not part of the body, to be inserted at an offset of it.
type insertion struct {
	at   int
	json []byte
}

// renew renders again the uncached groups before the message with index next.
func (r *rendering) renew(ctx context.Context, next int) {
	for n, g := range r.groups {
		if n > 0 && !g.isFresh {
			r.isSeen = r.isSeen || g.hasAnswer
			r.countCached(n)
			continue
		}
		end := next
		if n+1 < len(r.groups) {
			end = r.groups[n+1].from
		}
		for i := g.from; i < end; i++ {
			r.add(r.message(ctx, i))
		}
		r.show(g.at)
	}
}

func (r *rendering) renderMessage(ctx context.Context, i int) {
	out := r.message(ctx, i)
	if len(out) == 0 {
		return
	}
	if len(r.out) == 0 || !r.isMerged(out[0]) && !r.lacksAnswer(out[0]) {
		r.endGroup()
		r.groups = append(r.groups, group{from: i, at: len(r.body)})
	}
	if len(r.messages[i].Attachments) > 0 {
		r.groups[len(r.groups)-1].isFresh = true
	}
	r.add(out)
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
	first, results := r.firstCall(i), r.results(i)
	ids := make([]string, len(m.ToolCalls))
	out := make([]message, 1, 1+len(ids))
	for n, call := range m.ToolCalls {
		ids[n] = r.target.quirks.tools.wireID(call.ID, r.calls[first+n])
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

func (r *rendering) firstCall(i int) int {
	first, _ := slices.BinarySearchFunc(r.calls, i, func(c call, by int) int { return cmp.Compare(c.by, by) })
	return first
}

func (r *rendering) results(i int) []string {
	first := r.firstCall(i)
	texts := make([]string, len(r.messages[i].ToolCalls))
	for n := range texts {
		texts[n] = event.OutcomeUnknown
		if at := r.calls[first+n].result; at >= 0 {
			texts[n] = resultText(r.messages[at])
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

// add appends messages to the group. It merges the first one if roles must alternate, and inserts
// an answer where one must follow a result.
func (r *rendering) add(messages []message) {
	last := len(r.out) - 1
	switch {
	case len(messages) == 0 || last < 0:
	case r.isMerged(messages[0]):
		r.out[last] = merge(r.out[last], messages[0])
		messages = messages[1:]
	case r.lacksAnswer(messages[0]):
		r.out = append(r.out, message{role: openai.ChatMessageRoleAssistant, text: noAnswer})
	}
	r.out = append(r.out, messages...)
}

func (r *rendering) isMerged(m message) bool {
	return r.target.quirks.alternate && isMergeable(r.out[len(r.out)-1], m)
}

// lacksAnswer reports whether an answer must be inserted between the last message of the group and
// a message. Both belong to one group, so that no group depends on how the previous one ends.
func (r *rendering) lacksAnswer(m message) bool {
	return r.target.quirks.tools.noUserAfterResult && m.role == openai.ChatMessageRoleUser &&
		r.out[len(r.out)-1].role == openai.ChatMessageRoleTool
}

func isMergeable(a, b message) bool {
	return a.role == b.role && a.role != openai.ChatMessageRoleTool && len(a.toolCalls) == 0
}

// endGroup caches the current group unless each request must render it again.
func (r *rendering) endGroup() {
	if len(r.out) == 0 {
		return
	}
	g := &r.groups[len(r.groups)-1]
	g.hasAnswer = slices.ContainsFunc(r.out, isAnswer)
	if g.isFresh || len(r.shown) == 0 {
		r.show(g.at)
		return
	}
	r.isSeen = r.isSeen || g.hasAnswer
	before := r.tokens
	r.body = r.encode(r.body)
	g.tokens = r.tokens - before
}

// show adds the current group to this request without caching it. Before the first group, it also adds
// the system message.
func (r *rendering) show(at int) {
	for _, m := range r.out {
		if media := mediaIn(m); media != 0 {
			r.media, r.isSeen = r.media|media, false
		} else if isAnswer(m) {
			r.isSeen = true
		}
	}
	if len(r.shown) == 0 {
		r.front()
	}
	r.shown = append(r.shown, insertion{at: at, json: r.encode(nil)})
}

// encode appends the JSON of the group, with a comma before each message, and ends the group.
func (r *rendering) encode(to []byte) []byte {
	for _, m := range r.out {
		data, err := m.encode()
		r.err = cmp.Or(r.err, err)
		to = append(append(to, ','), data...)
		if mediaIn(m) != 0 {
			r.mediaBytes += len(data)
			for _, p := range m.parts {
				if p.Type == "text" {
					r.mediaBytes -= len(p.Text)
				} else {
					r.mediaParts++
				}
			}
		}
		if r.counts {
			r.tokens += r.target.counter.message(r.encoding, data)
		}
	}
	r.out = nil
	return to
}

// lacksUser reports whether the conversation ends with an answer, or with the system message.
func (r *rendering) lacksUser() bool {
	if last := len(r.out) - 1; last >= 0 {
		return isAnswer(r.out[last])
	}
	return len(r.groups) == 0 && r.system() != ""
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
func (r *rendering) front() {
	system := r.system()
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

func (r *rendering) conversation() conversation {
	c := conversation{media: r.media, isSeen: r.isSeen, cached: r.cachedMessages(), mediaParts: r.mediaParts, mediaBytes: r.mediaBytes}
	if r.counts {
		c.tokens = requestTokens + r.tokens
	}
	begin := 0
	for _, s := range r.shown {
		c.shown = append(c.shown, s.json)
		for _, piece := range [][]byte{r.body[begin:s.at], s.json} {
			if len(c.json) == 0 && len(piece) > 0 {
				piece = piece[1:] // the comma before the first message
			}
			if len(piece) > 0 {
				c.json = append(c.json, piece)
			}
		}
		begin = s.at
	}
	return c
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
	return firstOf(name[:min(len(name), 64)], "tool")
}

// wireArguments returns a JSON object, which some providers require.
func wireArguments(arguments string) string {
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(arguments), &object) == nil && object != nil {
		return arguments
	}
	if isBlank(arguments) || strings.TrimSpace(arguments) == "null" {
		return "{}"
	}
	value := json.RawMessage(arguments)
	if !json.Valid(value) {
		value = encoded(arguments)
	}
	return string(encoded(map[string]json.RawMessage{"input": value}))
}

func isBlank(text string) bool { return strings.TrimSpace(text) == "" }
