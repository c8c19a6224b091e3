package llm

import (
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

// render is a conversation as the provider takes it. Whatever the messages
// are, what comes out has one system message at most, in front; has no message
// without content; and every assistant message with tool calls is followed by
// one result for each of them. The messages are not changed. The context bounds
// the reading of attachments.
func (t *Target) render(ctx context.Context, messages []reducer.Message) []openai.ChatCompletionMessage {
	r := rendering{target: t, messages: messages}
	r.pairResults()
	for i, m := range messages {
		switch m.Role {
		case reducer.RoleSystem:
			r.addSystem(m.Content)
		case reducer.RoleAssistant:
			r.addAssistant(i, m)
		case reducer.RoleTool:
			if !r.isPaired[i] {
				r.addText(openai.ChatMessageRoleUser, fmt.Sprintf("[Result of a tool call that is not part of this conversation: %s]", resultText(m)))
			}
		default:
			r.addUser(ctx, m)
		}
	}
	return r.finish()
}

// rendering is a conversation being rendered.
type rendering struct {
	target   *Target
	messages []reducer.Message
	// results has, for each assistant message with calls, the indexes of
	// their results; -1 for a call without one.
	results map[int][]int
	// isPaired has the indexes of the results that have a call.
	isPaired map[int]bool
	system   []string
	out      []openai.ChatCompletionMessage
}

// pairResults finds the result of every call: the first one with the call's id
// that stands behind it and is not another call's.
func (r *rendering) pairResults() {
	r.results, r.isPaired = map[int][]int{}, map[int]bool{}
	waiting := map[string][]int{}
	for i := len(r.messages) - 1; i >= 0; i-- {
		m := r.messages[i]
		if m.Role == reducer.RoleTool {
			waiting[m.ToolCallID] = append(waiting[m.ToolCallID], i)
		}
		if m.Role != reducer.RoleAssistant {
			continue
		}
		for _, call := range m.ToolCalls {
			found := -1
			if n := len(waiting[call.ID]); n > 0 {
				found = waiting[call.ID][n-1]
				waiting[call.ID] = waiting[call.ID][:n-1]
				r.isPaired[found] = true
			}
			r.results[i] = append(r.results[i], found)
		}
	}
}

func (r *rendering) addSystem(content string) {
	if !isBlank(content) {
		r.system = append(r.system, content)
	}
}

func (r *rendering) addUser(ctx context.Context, m reducer.Message) {
	var blocks []block
	if !isBlank(m.Content) {
		blocks = append(blocks, block{text: m.Content})
	}
	for _, a := range m.Attachments {
		blocks = append(blocks, r.target.attachment(ctx, a))
	}
	if len(blocks) > 0 {
		r.add(userMessage(blocks))
	}
}

// userMessage is a plain string when there is nothing but text, which is what
// every server takes, and content parts otherwise.
func userMessage(blocks []block) openai.ChatCompletionMessage {
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

func (r *rendering) addAssistant(i int, m reducer.Message) {
	if len(m.ToolCalls) == 0 {
		r.addText(openai.ChatMessageRoleAssistant, m.Content)
		return
	}
	if r.target.quirks.toolsAsText {
		r.addToolsAsText(i, m)
		return
	}
	message := openai.ChatCompletionMessage{Role: openai.ChatMessageRoleAssistant}
	if !isBlank(m.Content) {
		message.Content = m.Content
	}
	ids := make([]string, len(m.ToolCalls))
	for n, call := range m.ToolCalls {
		ids[n] = wireID(call.ID, ids[:n])
		message.ToolCalls = append(message.ToolCalls, openai.ToolCall{
			ID:       ids[n],
			Type:     openai.ToolTypeFunction,
			Function: openai.FunctionCall{Name: wireName(call.Name), Arguments: wireArguments(call.Arguments)},
		})
	}
	r.add(message)
	for n := range m.ToolCalls {
		r.add(openai.ChatCompletionMessage{
			Role: openai.ChatMessageRoleTool, ToolCallID: ids[n], Content: r.result(i, n),
		})
	}
}

// addToolsAsText tells of the calls in the answer, and of the results in the
// words of the user.
func (r *rendering) addToolsAsText(i int, m reducer.Message) {
	var said []string
	if !isBlank(m.Content) {
		said = append(said, m.Content)
	}
	var results []string
	for n, call := range m.ToolCalls {
		said = append(said, fmt.Sprintf("[Called the tool %s with %s]", wireName(call.Name), wireArguments(call.Arguments)))
		results = append(results, fmt.Sprintf("[The tool %s returned: %s]", wireName(call.Name), r.result(i, n)))
	}
	r.addText(openai.ChatMessageRoleAssistant, strings.Join(said, "\n\n"))
	r.addText(openai.ChatMessageRoleUser, strings.Join(results, "\n\n"))
}

// result is the text of the result of the n-th call of message i.
func (r *rendering) result(i, n int) string {
	if at := r.results[i][n]; at >= 0 {
		return resultText(r.messages[at])
	}
	return unknownOutcome
}

func resultText(m reducer.Message) string {
	if isBlank(m.Content) {
		return emptyResult
	}
	return m.Content
}

// addText adds a message of text, unless there is none.
func (r *rendering) addText(role, text string) {
	if !isBlank(text) {
		r.add(openai.ChatCompletionMessage{Role: role, Content: text})
	}
}

// add appends a message, or merges it with its neighbour where the roles must
// alternate.
func (r *rendering) add(m openai.ChatCompletionMessage) {
	if last := len(r.out) - 1; r.target.quirks.alternate && last >= 0 && isMergeable(r.out[last], m) {
		r.out[last] = merge(r.out[last], m)
		return
	}
	r.out = append(r.out, m)
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

// finish puts the system message in front, in the shape that the provider
// knows.
func (r *rendering) finish() []openai.ChatCompletionMessage {
	system := strings.Join(r.system, "\n\n")
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
	return append(front, r.out...)
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
