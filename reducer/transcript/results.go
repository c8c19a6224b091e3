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

func (a ActionType) withResult(r event.ToolResult, relative func(string) string) (Status, ActionType) {
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
		result := commandResult(text)
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
			a = a.withReportedChanges(raw, relative)
		}
	}
	return status, a
}

func failure(raw json.RawMessage) (Status, string) {
	var e struct{ Type, Message string }
	if json.Unmarshal(raw, &e) != nil {
		return Failed, plain(raw)
	}
	kind, text := strings.ToLower(separators.Replace(e.Type)), cmp.Or(e.Message, plain(raw))
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

// Exit status in the output of Droid and Claude Code.
var (
	exitSuffix = regexp.MustCompile(`\n*\[Process exited with code (-?\d+)\]\s*$`)
	exitPrefix = regexp.MustCompile(`^(?:Error: )?Exit code (-?\d+)(?:\n|$)`)
)

func commandResult(text string) CommandResult {
	for _, pattern := range []*regexp.Regexp{exitSuffix, exitPrefix} {
		m := pattern.FindStringSubmatchIndex(text)
		if m == nil {
			continue
		}
		if status, err := strconv.Atoi(text[m[2]:m[3]]); err == nil {
			return CommandResult{ExitStatus: &status, Output: text[:m[0]] + text[m[1]:]}
		}
	}
	return CommandResult{Output: text}
}

type reportedChange struct {
	FilePath string  `json:"file_path"`
	Diff     string  `json:"diff"`
	Content  *string `json:"content"`
}

// reportedChangeOf decodes an edit. Droid nests that of ApplyPatch in the field "value".
func reportedChangeOf(raw json.RawMessage) (change reportedChange, ok bool) {
	var nested struct {
		Value json.RawMessage `json:"value"`
	}
	ok = unmarshal(raw, &change)
	if ok && change == (reportedChange{}) && unmarshal(raw, &nested) && len(nested.Value) > 0 {
		ok = unmarshal(nested.Value, &change)
	}
	return change, ok
}

// unmarshal decodes an object or its JSON in a string.
func unmarshal(raw json.RawMessage, into any) (ok bool) {
	if text, isText := stringOf(raw); isText {
		raw = json.RawMessage(text)
	}
	return json.Unmarshal(raw, into) == nil
}

// withReportedChanges takes the exact change from a result. Calls with several changes, a deletion or a
// rename keep theirs, because results do not describe them.
func (a ActionType) withReportedChanges(raw json.RawMessage, relative func(string) string) ActionType {
	result, ok := reportedChangeOf(raw)
	isDeletionOrRename := func(c FileChange) bool { return c.Action == Delete || c.Action == Rename }
	if !ok || len(a.Changes) > 1 || slices.ContainsFunc(a.Changes, isDeletionOrRename) {
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

// plain joins text blocks, and keeps other JSON.
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
