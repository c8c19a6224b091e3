package llm

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/sashabaranov/go-openai"

	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// Texts that stand for what is not there.
const (
	unknownOutcome  = "interrupted, outcome unknown"
	emptyResult     = "(empty)"
	assistantBegins = "(The conversation begins with the assistant.)"
)

// conversation is a conversation as it is sent.
type conversation struct {
	// json is its messages, with commas between them, in pieces to be read one
	// after the other. They are not to be changed.
	json [][]byte
	// hasImage says that an image is among them, and isSeen that an answer stands
	// behind the newest.
	hasImage, isSeen bool
}

// render is a conversation as the provider takes it. Whatever the messages
// are, what comes out has one system message at most, in front; has no message
// without content; and every assistant message with tool calls is followed by
// one result for each of them. The messages are not changed. The context bounds
// the reading of attachments.
//
// What was rendered for an earlier request of the same conversation is taken
// over as far as it is the same.
func (t *Target) render(ctx context.Context, messages []reducer.Message) (conversation, error) {
	r := rendering{target: t, rendered: t.renderings.take(t.renderingKey())}
	next := r.resume(messages)
	r.renew(ctx, next)
	for i := next; i < len(messages); i++ {
		r.goOn(ctx, i)
	}
	// The last group stays open: the next message may join it.
	r.show(len(r.body))
	if r.err != nil {
		return conversation{}, r.err
	}
	t.renderings.put(t.renderingKey(), r.rendered)
	return r.conversation(), nil
}

// rendering is a conversation being rendered.
type rendering struct {
	rendered
	target *Target
	// isPaired tells of each message whether it is the result of a call.
	isPaired []bool
	// out is the group that is being rendered.
	out []openai.ChatCompletionMessage
	// shown is what stands between the bytes of the body.
	shown            []insertion
	hasImage, isSeen bool
	err              error
}

// insertion is JSON that stands at a place of the body and is not part of it.
type insertion struct {
	at   int
	json []byte
}

// renew renders those groups again that stand before message next and are not
// kept.
func (r *rendering) renew(ctx context.Context, next int) {
	for n, g := range r.groups {
		if n > 0 && !g.isFresh {
			r.isSeen = r.isSeen || g.hasAnswer
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

// goOn renders message i, which joins the group before it or begins another.
func (r *rendering) goOn(ctx context.Context, i int) {
	out := r.message(ctx, i)
	if len(out) == 0 {
		return
	}
	if len(r.out) == 0 || !r.isMerged(out[0]) {
		r.endGroup()
		r.groups = append(r.groups, group{from: i, at: len(r.body)})
	}
	if len(r.messages[i].Attachments) > 0 {
		r.groups[len(r.groups)-1].isFresh = true
	}
	r.add(out)
}

// message is what comes out of message i by itself.
func (r *rendering) message(ctx context.Context, i int) []openai.ChatCompletionMessage {
	switch m := r.messages[i]; {
	case m.Role == reducer.RoleSystem:
		return nil // see front
	case m.Role == reducer.RoleAssistant && len(m.ToolCalls) == 0:
		return textOf(openai.ChatMessageRoleAssistant, m.Content)
	case m.Role == reducer.RoleAssistant && r.target.quirks.toolsAsText:
		return r.callsAsText(i)
	case m.Role == reducer.RoleAssistant:
		return r.calling(i)
	case m.Role == reducer.RoleTool && r.isPaired[i]:
		return nil // it stands behind its call
	case m.Role == reducer.RoleTool:
		return textOf(openai.ChatMessageRoleUser, fmt.Sprintf("[Result of a tool call that is not part of this conversation: %s]", resultText(m)))
	default:
		return r.target.userMessage(ctx, m)
	}
}

// textOf is a message of text, unless there is none.
func textOf(role, text string) []openai.ChatCompletionMessage {
	if isBlank(text) {
		return nil
	}
	return []openai.ChatCompletionMessage{{Role: role, Content: text}}
}

func (t *Target) userMessage(ctx context.Context, m reducer.Message) []openai.ChatCompletionMessage {
	var blocks []block
	if !isBlank(m.Content) {
		blocks = append(blocks, block{text: m.Content})
	}
	for _, a := range m.Attachments {
		blocks = append(blocks, t.attachment(ctx, a))
	}
	if len(blocks) == 0 {
		return nil
	}
	return []openai.ChatCompletionMessage{messageOf(blocks)}
}

// messageOf is a plain string when there is nothing but text, which is what
// every server takes, and content parts otherwise.
func messageOf(blocks []block) openai.ChatCompletionMessage {
	message := openai.ChatCompletionMessage{Role: openai.ChatMessageRoleUser}
	for _, b := range blocks {
		if b.imageURL != "" {
			message.MultiContent = partsOf(blocks)
			return message
		}
	}
	texts := make([]string, len(blocks))
	for i, b := range blocks {
		texts[i] = b.text
	}
	message.Content = strings.Join(texts, "\n\n")
	return message
}

func partsOf(blocks []block) []openai.ChatMessagePart {
	parts := make([]openai.ChatMessagePart, len(blocks))
	for i, b := range blocks {
		parts[i] = openai.ChatMessagePart{Type: openai.ChatMessagePartTypeText, Text: b.text}
		if b.imageURL != "" {
			parts[i] = openai.ChatMessagePart{
				Type:     openai.ChatMessagePartTypeImageURL,
				ImageURL: &openai.ChatMessageImageURL{URL: b.imageURL},
			}
		}
	}
	return parts
}

// calling is an assistant message with calls, and their results.
func (r *rendering) calling(i int) []openai.ChatCompletionMessage {
	m := r.messages[i]
	message := openai.ChatCompletionMessage{Role: openai.ChatMessageRoleAssistant}
	if !isBlank(m.Content) {
		message.Content = m.Content
	}
	results := r.results(i)
	ids := make([]string, len(m.ToolCalls))
	out := make([]openai.ChatCompletionMessage, 1, 1+len(ids))
	for n, call := range m.ToolCalls {
		ids[n] = wireID(call.ID, ids[:n])
		message.ToolCalls = append(message.ToolCalls, openai.ToolCall{
			ID:       ids[n],
			Type:     openai.ToolTypeFunction,
			Function: openai.FunctionCall{Name: wireName(call.Name), Arguments: wireArguments(call.Arguments)},
		})
		out = append(out, openai.ChatCompletionMessage{
			Role: openai.ChatMessageRoleTool, ToolCallID: ids[n], Content: results[n],
		})
	}
	out[0] = message
	return out
}

// callsAsText tells of the calls in the answer, and of the results in the
// words of the user.
func (r *rendering) callsAsText(i int) []openai.ChatCompletionMessage {
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
	return []openai.ChatCompletionMessage{
		{Role: openai.ChatMessageRoleAssistant, Content: strings.Join(said, "\n\n")},
		{Role: openai.ChatMessageRoleUser, Content: strings.Join(results, "\n\n")},
	}
}

// results are the texts of the results of the calls of message i.
func (r *rendering) results(i int) []string {
	first, _ := slices.BinarySearchFunc(r.calls, i, func(c call, by int) int { return cmp.Compare(c.by, by) })
	texts := make([]string, len(r.messages[i].ToolCalls))
	for n := range texts {
		texts[n] = unknownOutcome
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

// add appends messages to the group. The first of them is merged with its
// neighbour where the roles must alternate.
func (r *rendering) add(messages []openai.ChatCompletionMessage) {
	if len(messages) > 0 && len(r.out) > 0 && r.isMerged(messages[0]) {
		last := len(r.out) - 1
		r.out[last] = merge(r.out[last], messages[0])
		messages = messages[1:]
	}
	r.out = append(r.out, messages...)
}

// isMerged reports whether a message is merged with the last one of the group.
func (r *rendering) isMerged(m openai.ChatCompletionMessage) bool {
	return r.target.quirks.alternate && isMergeable(r.out[len(r.out)-1], m)
}

func isMergeable(a, b openai.ChatCompletionMessage) bool {
	return a.Role == b.Role && a.Role != openai.ChatMessageRoleTool && len(a.ToolCalls) == 0
}

// merge joins two messages, of which only the second may have tool calls.
func merge(a, b openai.ChatCompletionMessage) openai.ChatCompletionMessage {
	a.ToolCalls = b.ToolCalls
	if a.MultiContent == nil && b.MultiContent == nil {
		if b.Content != "" {
			a.Content += "\n\n" + b.Content
		}
		return a
	}
	a.MultiContent = append(asParts(a), asParts(b)...)
	a.Content = ""
	return a
}

func asParts(m openai.ChatCompletionMessage) []openai.ChatMessagePart {
	if m.MultiContent != nil {
		return m.MultiContent
	}
	return partsOf([]block{{text: m.Content}})
}

// endGroup keeps the group that was rendered, unless it is to be rendered anew.
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
	r.body = r.encode(r.body)
}

// show puts the group that was rendered at a place of the body, and the system
// message in front of the first.
func (r *rendering) show(at int) {
	for _, m := range r.out {
		switch {
		case hasImage(m):
			r.hasImage, r.isSeen = true, false
		case isAnswer(m):
			r.isSeen = true
		}
	}
	if len(r.shown) == 0 {
		r.front()
	}
	r.shown = append(r.shown, insertion{at: at, json: r.encode(nil)})
}

// encode appends the JSON of the group, a comma before each message, and ends
// the group.
func (r *rendering) encode(to []byte) []byte {
	for _, m := range r.out {
		data, err := json.Marshal(m)
		r.err = cmp.Or(r.err, err)
		to = append(append(to, ','), data...)
	}
	r.out = nil
	return to
}

// front puts the system message before the first group, in the shape that the
// provider knows.
func (r *rendering) front() {
	var texts []string
	for i := range r.messages {
		if m := &r.messages[i]; m.Role == reducer.RoleSystem && !isBlank(m.Content) {
			texts = append(texts, m.Content)
		}
	}
	system := strings.Join(texts, "\n\n")
	isUserFirst := len(r.out) > 0 && r.out[0].Role == openai.ChatMessageRoleUser
	var front []openai.ChatCompletionMessage
	switch {
	case system != "" && !r.target.quirks.noSystem:
		front = append(front, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleSystem, Content: system})
	case system != "" && isUserFirst:
		r.out[0] = merge(openai.ChatCompletionMessage{Role: openai.ChatMessageRoleUser, Content: system}, r.out[0])
	case system != "":
		front = append(front, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleUser, Content: system})
		isUserFirst = true
	}
	if r.target.quirks.alternate && !isUserFirst && len(r.out) > 0 {
		front = append(front, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleUser, Content: assistantBegins})
	}
	r.out = append(front, r.out...)
}

// conversation is what was rendered, put together.
func (r *rendering) conversation() conversation {
	c := conversation{hasImage: r.hasImage, isSeen: r.isSeen}
	begin := 0
	for _, s := range r.shown {
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
	notInName = regexp.MustCompile(`[^A-Za-z0-9_-]`)
)

// wireID is a tool call id that every provider takes: at most 40 characters
// (OpenAI) of letters, digits, _ and - (Anthropic), unlike those before it in
// the same message. A result is given the id of its call, so nothing else has
// to match.
func wireID(id string, taken []string) string {
	for !goodID.MatchString(id) || slices.Contains(taken, id) {
		sum := sha256.Sum256([]byte(id))
		id = hex.EncodeToString(sum[:16])
	}
	return id
}

// wireName is a function name that every provider takes: 1 to 64 letters,
// digits, _ and -.
func wireName(name string) string {
	name = notInName.ReplaceAllString(name, "_")
	return firstOf(name[:min(len(name), 64)], "tool")
}

// wireArguments is a JSON object, which those providers need that parse it.
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
		value, _ = json.Marshal(arguments)
	}
	wrapped, err := json.Marshal(map[string]json.RawMessage{"input": value})
	if err != nil {
		return "{}"
	}
	return string(wrapped)
}

func isBlank(text string) bool { return strings.TrimSpace(text) == "" }
