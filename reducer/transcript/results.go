package transcript

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// with returns the status of a call, and its action completed by the result.
func (a ActionType) with(r event.ToolResult, relative func(string) string) (Status, ActionType) {
	raw := r.Value
	if len(raw) == 0 {
		raw = r.Error
	}
	status, text := Success, plain(raw)
	if r.IsError || len(r.Error) > 0 {
		status, text = failure(raw)
	}
	switch a.Action {
	case CommandRun:
		result := ended(text)
		if result.ExitStatus != nil && *result.ExitStatus != 0 && status == Success {
			status = Failed
		}
		a.Result = encode(result)
	case Tool:
		a.Result = valid(raw)
	case FileRead, Search, WebFetch, Other:
		a.Result = encode(text)
	default:
		if status != Success {
			a.Result = encode(text)
		} else if a.Action == FileEdit {
			a = a.told(raw, relative)
		}
	}
	return status, a
}

// failure returns the status by the type in an error, and its message.
func failure(raw json.RawMessage) (Status, string) {
	var e struct{ Type, Message string }
	if json.Unmarshal(raw, &e) != nil {
		return Failed, plain(raw)
	}
	kind, text := strings.ToLower(betweenWords.Replace(e.Type)), cmp.Or(e.Message, plain(raw))
	isOneOf := func(words ...string) bool {
		return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(kind, word) })
	}
	switch {
	case isOneOf("denied", "reject", "permission"):
		return Denied, text
	case isOneOf("timeout", "timedout"):
		return TimedOut, text
	}
	return Failed, text
}

// Exit status in command output, as written by Droid and Claude Code.
var (
	exitBehind = regexp.MustCompile(`\n*\[Process exited with code (-?\d+)\]\s*$`)
	exitBefore = regexp.MustCompile(`^(?:Error: )?Exit code (-?\d+)(?:\n|$)`)
)

// ended splits the exit status from the output of a command.
func ended(text string) CommandResult {
	for _, said := range []*regexp.Regexp{exitBehind, exitBefore} {
		m := said.FindStringSubmatchIndex(text)
		if m == nil {
			continue
		}
		if status, err := strconv.Atoi(text[m[2]:m[3]]); err == nil {
			return CommandResult{ExitStatus: &status, Output: text[:m[0]] + text[m[1]:]}
		}
	}
	return CommandResult{Output: text}
}

// told replaces the changes of an edit by those in its result, which are exact. The
// result is an object or its JSON in a string. It does not report deletions and renames,
// nor which of several files it is about; those changes stay as they are.
func (a ActionType) told(raw json.RawMessage, relative func(string) string) ActionType {
	if text, ok := stringOf(raw); ok {
		raw = json.RawMessage(text)
	}
	var result struct {
		FilePath string  `json:"file_path"`
		Diff     string  `json:"diff"`
		Content  *string `json:"content"`
	}
	isKept := func(c FileChange) bool { return c.Action == Delete || c.Action == Rename }
	if json.Unmarshal(raw, &result) != nil || len(a.Changes) > 1 || slices.ContainsFunc(a.Changes, isKept) {
		return a
	}
	a.Path = cmp.Or(a.Path, relative(result.FilePath))
	switch {
	case result.Diff != "":
		a.Changes = []FileChange{{Action: Edit, UnifiedDiff: result.Diff}}
	case result.Content != nil:
		a.Changes = []FileChange{{Action: Write, Content: *result.Content}}
	}
	return a
}

// plain returns a result as text: a string unchanged, text blocks joined, anything
// else as JSON.
func plain(raw json.RawMessage) string {
	if text, ok := stringOf(raw); ok {
		return text
	}
	var blocks []struct{ Type, Text string }
	if json.Unmarshal(raw, &blocks) == nil {
		var texts []string
		for _, b := range blocks {
			if b.Type != "text" {
				return string(raw)
			}
			texts = append(texts, b.Text)
		}
		return strings.Join(texts, "\n")
	}
	return string(raw)
}
