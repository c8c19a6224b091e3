package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/tool"
)

const (
	searchTimeout = time.Minute
	defaultHits   = 10
	maxHits       = 50
	maxWords      = 16
	maxQueryBytes = 200
	aroundHit     = 120 // bytes of text on each side of a word
)

const searchName = "search_log"

// Log reads logs; see client.Client.
type Log interface {
	// Events yields the events of a context that follow the event with the id from. Empty from: all.
	Events(ctx context.Context, contextName, from string) iter.Seq2[event.Event, error]
}

type searchInput struct {
	Query  string `json:"query" jsonschema:"words that all occur in the text, in any order and case"`
	Limit  int    `json:"limit,omitempty" jsonschema:"the number of results; default 10, at most 50"`
	Before string `json:"before,omitempty" jsonschema:"an event id: search only earlier events"`
}

// SearchLog returns the tool search_log, which finds messages, tool calls and tool results in the
// log of the calling context, including those that models no longer receive.
func SearchLog(log Log) tool.Tool {
	return tool.Must(tool.New(searchName, "Search this conversation's whole log for messages, tool calls and tool results; the newest first.",
		searcher{log}.search, tool.Idempotent(), tool.Timeout(searchTimeout)))
}

type searcher struct{ log Log }

func (s searcher) search(ctx context.Context, in searchInput) (string, error) {
	words, err := wordsOf(in.Query)
	if err != nil {
		return "", err
	}
	if in.Limit == 0 {
		in.Limit = defaultHits
	}
	before := event.Counter(in.Before)
	switch {
	case in.Limit < 1 || in.Limit > maxHits:
		return "", fmt.Errorf("limit %d is out of range (1 to %d)", in.Limit, maxHits)
	case in.Before != "" && before == 0:
		return "", errors.New("before: want an event id like demo:0012")
	}
	var hits []string // the newest last
	found := 0
	own := map[string]bool{} // calls of this tool, which contain the words
	for e, err := range s.log.Events(ctx, tool.ContextName(ctx), "") {
		if err != nil {
			return "", tool.Retryable(fmt.Errorf("the log cannot be read: %w", err))
		}
		if before > 0 && event.Counter(e.ID) >= before {
			break
		}
		if call, isCall := e.Body.(event.ToolCall); isCall && call.ToolName == searchName {
			own[call.ToolCallID] = true
		}
		kind, text := textOf(e.Body, own)
		at := locate(text, words)
		if at < 0 {
			continue
		}
		found++
		hits = append(hits, fmt.Sprintf("%s %s %s: %s", e.ID, e.Timestamp.UTC().Format(time.RFC3339), kind, excerpt(text, at)))
		if len(hits) > in.Limit {
			hits = hits[1:]
		}
	}
	if found == 0 {
		return "[no event matches]", nil
	}
	slices.Reverse(hits)
	if found > len(hits) {
		hits = append(hits, fmt.Sprintf("[%d events match; these are the newest %d]", found, len(hits)))
	}
	return strings.Join(hits, "\n"), nil
}

func wordsOf(query string) (words []*regexp.Regexp, err error) {
	fields := strings.Fields(query)
	if len(fields) == 0 || len(fields) > maxWords || len(query) > maxQueryBytes {
		return nil, fmt.Errorf("query: want 1 to %d words with at most %d bytes in total", maxWords, maxQueryBytes)
	}
	for _, word := range fields {
		words = append(words, regexp.MustCompile(`(?i)`+regexp.QuoteMeta(word)))
	}
	return words, nil
}

// textOf returns the kind and the searched text of an event. Empty: the event is not searched.
func textOf(body event.Body, own map[string]bool) (kind, text string) {
	switch body := body.(type) {
	case event.UserMessage:
		return "user", body.Content
	case event.AssistantMessage:
		return "assistant", body.Content
	case event.FileAttachment:
		return "attachment", strings.TrimSpace(body.FileName + " " + body.Source.String())
	case event.ToolCall:
		if !own[body.ToolCallID] {
			return "tool call", body.ToolName + " " + string(body.Parameters)
		}
	case event.ToolResult:
		if !own[body.ToolCallID] {
			return "tool result", plain(body.Value) + plain(body.Error)
		}
	}
	return "", ""
}

func plain(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text
	}
	return string(value)
}

// locate returns where the first word occurs in a text that contains all words. -1: not all.
func locate(text string, words []*regexp.Regexp) int {
	first := -1
	for i, word := range words {
		found := word.FindStringIndex(text)
		if found == nil {
			return -1
		}
		if i == 0 {
			first = found[0]
		}
	}
	return first
}

func excerpt(text string, at int) string {
	from, to := max(0, at-aroundHit), min(len(text), at+aroundHit)
	part := strings.Join(strings.Fields(strings.ToValidUTF8(text[from:to], "")), " ")
	if from > 0 {
		part = "…" + part
	}
	if to < len(text) {
		part += "…"
	}
	return part
}
