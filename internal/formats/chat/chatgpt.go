package chat

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// Conversation is a conversation of an export of ChatGPT. Only its current branch is imported.
type Conversation struct {
	ID, Title string
	created   seconds
	mapping   map[string]node // by id: a tree, in which each edited message and each repeated answer is a branch
	current   string          // id of the leaf of the current branch
	err       error           // why the conversation cannot be read
}

type node struct {
	Parent  string       `json:"parent"`
	Message *nodeMessage `json:"message"` // nil: the root
}

type nodeMessage struct {
	Author struct {
		Role string `json:"role"`
		Name string `json:"name"` // of a tool
	} `json:"author"`
	CreateTime seconds         `json:"create_time"`
	Content    json.RawMessage `json:"content"`
	Recipient  string          `json:"recipient"` // the tool that an assistant calls; all: the user
	Metadata   struct {
		IsHidden bool `json:"is_visually_hidden_from_conversation"`
	} `json:"metadata"`
}

// seconds since 1970. Those outside the years 1970 to 9999 are unknown.
type seconds float64

const maxSeconds = 253_402_300_799

func (s seconds) time() time.Time {
	if s <= 0 || s > maxSeconds {
		return time.Time{}
	}
	return time.UnixMicro(int64(math.Round(float64(s) * 1e6))).UTC()
}

// ErrNoMessages means that a [Conversation] is empty.
var ErrNoMessages = errors.New("has no messages")

var errExport = errors.New("the input is an export of ChatGPT (set --conversation or --all)")

// Conversations reads conversations.json of an export of ChatGPT: an array of conversations, or one of them. It holds
// one conversation in memory. An error comes last. That of an invalid conversation is in its log, unless it is the first: then
// the input is no export.
func Conversations(r io.Reader) iter.Seq2[Conversation, error] {
	return func(yield func(Conversation, error) bool) {
		count := 0
		err := eachConversation(r, func(raw json.RawMessage) error {
			count++
			c := decodeConversation(raw)
			if c.err != nil && count == 1 {
				return fmt.Errorf("conversation 1: %w (want conversations.json of an export of ChatGPT)", c.err)
			}
			if c.err != nil {
				c.err = fmt.Errorf("element %d of the export: %w", count, c.err)
			}
			if !yield(c, nil) {
				return errEnough
			}
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			yield(Conversation{}, err)
		}
	}
}

func eachConversation(r io.Reader, take func(json.RawMessage) error) error {
	in := bufio.NewReader(r)
	decoder := json.NewDecoder(in)
	isArray, skipped := false, int64(0)
	for ; ; skipped++ {
		next, err := in.Peek(1)
		if err != nil {
			return fmt.Errorf("the input has no conversations: %w", err)
		}
		if isArray = next[0] == '['; isArray || !strings.ContainsRune(" \t\r\n", rune(next[0])) {
			break
		}
		_, _ = in.Discard(1) // it was peeked
	}
	if isArray {
		_, _ = decoder.Token() // the bracket
	}
	count, before := 0, decoder.InputOffset()
	invalid := func(err error) error {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return fmt.Errorf("element %d, after byte %d: is not JSON: %w", count+1, skipped+before, err)
	}
	for ; decoder.More(); count++ {
		var raw json.RawMessage
		if err := decoder.Decode(&raw); err != nil {
			return invalid(err)
		}
		before = decoder.InputOffset()
		if err := take(raw); err != nil {
			return err
		}
	}
	if !isArray {
		return nil
	}
	if _, err := decoder.Token(); err != nil {
		return invalid(err)
	}
	return nil
}

func decodeConversation(raw json.RawMessage) Conversation {
	var in struct {
		ID             string          `json:"id"`
		ConversationID string          `json:"conversation_id"`
		Title          string          `json:"title"`
		CreateTime     seconds         `json:"create_time"`
		CurrentNode    string          `json:"current_node"`
		Mapping        map[string]node `json:"mapping"`
	}
	err := json.Unmarshal(raw, &in)
	if errors.As(err, new(*json.UnmarshalTypeError)) {
		err = nil // the field keeps its zero value
	}
	if err == nil && in.Mapping == nil {
		err = problem("mapping", "missing")
	}
	id := cmp.Or(in.ConversationID, in.ID)
	if id == "" {
		sum := sha256.Sum256(raw)
		id = hex.EncodeToString(sum[:])
	}
	return Conversation{ID: id, Title: in.Title, created: in.CreateTime, mapping: in.Mapping, current: in.CurrentNode, err: err}
}

var notInSlug = regexp.MustCompile(`[^a-z0-9]+`)

const maxSlug = 60 // bytes

// ContextName returns a name for a context that is made of the title and the beginning of the id. It is the same in
// every export.
func (c Conversation) ContextName() string {
	slug := notInSlug.ReplaceAllString(strings.ToLower(c.Title), "-")
	slug = strings.Trim(slug[:min(len(slug), maxSlug)], "-")
	id := notInSlug.ReplaceAllString(strings.ToLower(c.ID), "")
	return strings.Trim(cmp.Or(slug, "chatgpt")+"-"+id[:min(len(id), 8)], "-")
}

// Log returns the events of the current branch, as [Read] does. Content that a log cannot represent becomes text, such
// as [image_asset_pointer file-service://file-1].
func (c Conversation) Log(contextName string, at time.Time) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		events, err := c.events()
		p := placing{to: contextName, at: cmp.Or(c.created.time(), at.UTC()), others: map[string]int{}}
		for _, e := range events {
			if err != nil {
				break
			}
			if e, err = p.place(e); err == nil && !yield(e, nil) {
				return
			}
		}
		if err != nil {
			yield(event.Event{}, fmt.Errorf("conversation %q: %w", event.Redact(c.Title, 100), err))
		}
	}
}

// branch returns the messages from the root to the current leaf; without one, to the newest message.
func (c Conversation) branch() (messages []*nodeMessage) {
	id := c.current
	if _, isKnown := c.mapping[id]; !isKnown {
		newest := seconds(-1)
		for other, n := range c.mapping {
			if m := n.Message; m != nil && (m.CreateTime > newest || m.CreateTime == newest && other > id) {
				id, newest = other, m.CreateTime
			}
		}
	}
	seen := map[string]bool{}
	for ; !seen[id]; id = c.mapping[id].Parent {
		seen[id] = true
		if m := c.mapping[id].Message; m != nil {
			messages = append(messages, m)
		}
	}
	slices.Reverse(messages)
	return messages
}

func (c Conversation) events() ([]event.Event, error) {
	if c.err != nil {
		return nil, c.err
	}
	g := exported{dialogue: dialogue{open: map[string]bool{}}}
	for _, m := range c.branch() {
		before := len(g.events)
		if err := g.add(m); err != nil {
			return nil, err
		}
		for i := range g.events[before:] {
			g.events[before+i].Timestamp = m.CreateTime.time()
		}
	}
	if err := g.endCall(); err != nil {
		return nil, err
	}
	if len(g.events) == 0 {
		return nil, ErrNoMessages
	}
	if title := titleOf(c.Title); title != "" {
		titled := event.New(event.SetDetails{Title: &title})
		titled.Timestamp = g.events[len(g.events)-1].Timestamp
		g.events = append(g.events, titled)
	}
	return g.events, nil
}

// titleOf returns the beginning of a text as a title; "" for a text without words.
func titleOf(text string) string {
	printable := strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, text)
	title := strings.Join(strings.Fields(printable), " ")
	if len(title) > event.MaxTitleBytes {
		title = strings.ToValidUTF8(title[:event.MaxTitleBytes-len("…")], "") + "…"
	}
	return title
}

// exported converts messages of ChatGPT.
type exported struct {
	dialogue
	reasoning []string // of the next answer
	call      string   // id of the newest call, until a message follows that is no result
	results   []string // of the call
}

func (g *exported) add(m *nodeMessage) error {
	content := decodeContent(m.Content)
	text := strings.TrimSpace(content.text())
	isContext := content.kind == "user_editable_context"
	if m.Author.Role == "tool" {
		return g.addResult(m, text)
	}
	if err := g.endCall(); err != nil {
		return err
	}
	switch {
	case content.kind == "thoughts":
		g.reasoning = append(g.reasoning, text)
		return nil
	case text == "" || content.kind == "reasoning_recap":
		return nil
	case m.Author.Role == string(reducer.RoleSystem) || isContext:
		return g.addSystem(text)
	case m.Metadata.IsHidden:
		return nil
	case m.Author.Role == string(reducer.RoleUser):
		return g.record("", event.UserMessage{Content: text})
	case m.Author.Role != string(reducer.RoleAssistant):
		return g.record("", event.Note{Kind: event.NoteSystem, Content: text})
	case m.Recipient != "" && m.Recipient != "all":
		return g.addCall(m.Recipient, text)
	}
	return g.addAnswer("", text)
}

func (g *exported) addAnswer(id, text string) error {
	reasoning := strings.Join(g.reasoning, betweenTexts)
	g.reasoning = nil
	if len(reasoning) > event.MaxReasoningBytes {
		reasoning = strings.ToValidUTF8(reasoning[:event.MaxReasoningBytes], "")
	}
	return g.record(id, event.AssistantMessage{Content: text, Reasoning: reasoning})
}

// notInTool matches what the name of a tool in a conversation must not have.
var notInTool = regexp.MustCompile(`[^A-Za-z0-9_-]+`)

func (g *exported) addCall(recipient, text string) error {
	id := fmt.Sprint(len(g.events) + 1)
	if err := g.addAnswer(id, ""); err != nil {
		return err
	}
	input, err := json.Marshal(map[string]string{"input": text})
	if err != nil {
		return err
	}
	tool := notInTool.ReplaceAllString(recipient, "_")
	g.call = "call_" + id
	return g.record("", event.ToolCall{ToolCallID: g.call, MessageID: id, ToolName: tool[:min(len(tool), 64)], Parameters: input})
}

func (g *exported) addResult(m *nodeMessage, text string) error {
	switch {
	case text == "":
		return nil
	case g.call == "":
		return g.record("", event.Note{Kind: event.NoteSystem, Content: cmp.Or(m.Author.Name, "tool") + ": " + text})
	}
	g.results = append(g.results, text)
	return nil
}

// endCall records the results of the newest call as one.
func (g *exported) endCall() error {
	call, results := g.call, g.results
	g.call, g.results = "", nil
	if len(results) == 0 {
		return nil
	}
	value, err := json.Marshal(strings.Join(results, betweenTexts))
	if err != nil {
		return err
	}
	return g.record("", event.ToolResult{ToolCallID: call, Value: value})
}

// nodeContent is the content of a message, of which only the kind is certain.
type nodeContent struct {
	kind   string
	fields map[string]json.RawMessage
}

func decodeContent(raw json.RawMessage) nodeContent {
	c := nodeContent{}
	_ = json.Unmarshal(raw, &c.fields) // else it has no text
	c.kind = c.string("content_type")
	return c
}

func (c nodeContent) string(field string) (text string) {
	_ = json.Unmarshal(c.fields[field], &text)
	return text
}

func (c nodeContent) list(field string) (list []json.RawMessage) {
	_ = json.Unmarshal(c.fields[field], &list)
	return list
}

// text returns the text of any kind of content, with placeholders for the rest.
func (c nodeContent) text() string {
	var texts []string
	add := func(text string) {
		if text != "" {
			texts = append(texts, text)
		}
	}
	for _, field := range []string{"name", "title", "url", "user_profile", "user_instructions", "summary", "text", "result", "content"} {
		add(c.string(field))
	}
	for _, raw := range slices.Concat(c.list("parts"), c.list("thoughts")) {
		var text string
		if json.Unmarshal(raw, &text) != nil {
			text = decodeContent(raw).text()
		}
		add(text)
	}
	_, hasParts := c.fields["parts"]
	if len(texts) == 0 && c.kind != "" && c.kind != "text" && !hasParts {
		add("[" + strings.TrimSpace(c.kind+" "+c.string("asset_pointer")) + "]")
	}
	return strings.Join(texts, "\n")
}
