package transcript

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// tools is keyed in lower case without separators. A zero action means a generic tool.
var tools = map[string]func(parameters) ActionType{
	"read":          readFile,
	"readfile":      readFile,
	"ls":            listFolder,
	"listdirectory": listFolder,
	"listfiles":     listFolder,
	"glob":          search("patterns", "pattern", "glob_pattern"),
	"grep":          search("pattern", "query", "regex"),
	"websearch":     search("query"),
	"searchlog":     search("query"),
	"execute":       runCommand,
	"bash":          runCommand,
	"shell":         runCommand,
	"edit":          editFile,
	"multiedit":     editFile,
	"strreplace":    editFile,
	"create":        writeFile,
	"write":         writeFile,
	"writefile":     writeFile,
	"applypatch":    patchFiles,
	"todowrite":     todoList,
	"fetch":         fetchURL,
	"fetchurl":      fetchURL,
	"webfetch":      fetchURL,
	"exitspecmode":  presentPlan,
	"exitplanmode":  presentPlan,
	"task":          delegateTask,
	"agent":         delegateTask,
}

var separators = strings.NewReplacer("_", "", "-", "", " ", "", ".", "")

func actionOf(toolName string, raw json.RawMessage, cwd string) ActionType {
	p := parameters{cwd: cwd}
	object := raw
	// Some agents encode the parameters as a string.
	if text, ok := stringOf(raw); ok {
		object = json.RawMessage(text)
	}
	if json.Unmarshal(object, &p.fields) == nil {
		if parse, ok := tools[strings.ToLower(separators.Replace(toolName))]; ok {
			if action := parse(p); action.Action != "" {
				return action
			}
		}
	}
	return ActionType{Action: Tool, Arguments: valid(raw)}
}

func title(toolName string, a ActionType) string {
	text := cmp.Or(a.Query, a.Path, a.Command, a.URL, a.Plan, a.Description, toolName)
	if a.Action == TodoManagement {
		text = fmt.Sprintf("%d todos", len(a.Todos))
		if len(a.Todos) == 1 {
			text = "1 todo"
		}
	}
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return first
}

func readFile(p parameters) ActionType {
	path, ok := p.path("file_path", "path", "filePath")
	return actionIf(ok, ActionType{Action: FileRead, Path: path})
}

func listFolder(p parameters) ActionType {
	path, _ := p.path("directory_path", "path", "dir_path")
	return ActionType{Action: FileRead, Path: cmp.Or(path, ".")}
}

func search(names ...string) func(parameters) ActionType {
	return func(p parameters) ActionType {
		query, ok := p.text(names...)
		path, _ := p.path("path", "folder", "directory")
		return actionIf(ok, ActionType{Action: Search, Query: query, Path: path})
	}
}

func runCommand(p parameters) ActionType {
	command, ok := p.text("command", "cmd")
	return actionIf(ok, ActionType{Action: CommandRun, Command: command})
}

func writeFile(p parameters) ActionType {
	path, ok := p.path("file_path", "path", "filePath")
	content, hasContent := p.text("content", "contents", "file_text")
	return actionIf(ok && hasContent, ActionType{
		Action: FileEdit, Path: path, Changes: []FileChange{{Action: Write, Content: content}},
	})
}

func editFile(p parameters) ActionType {
	path, ok := p.path("file_path", "path", "filePath")
	replacements := p.objects("edits", "changes")
	if len(replacements) == 0 {
		replacements = []parameters{p}
	}
	action := ActionType{Action: FileEdit, Path: path}
	for _, r := range replacements {
		before, hasBefore := r.text("old_string", "old_str", "oldString", "old_text")
		after, hasAfter := r.text("new_string", "new_str", "newString", "new_text")
		ok = ok && (hasBefore || hasAfter)
		action.Changes = append(action.Changes, FileChange{Action: Edit, UnifiedDiff: diff(path, before, after)})
	}
	return actionIf(ok, action)
}

func patchFiles(p parameters) ActionType {
	text, ok := p.text("input", "patch")
	path, hasPath := p.path("file_path", "path")
	action := ActionType{Action: FileEdit, Path: path, Changes: parsePatch(text, p.relative)}
	if len(action.Changes) == 0 {
		return actionIf(ok || hasPath, action)
	}
	action.Path = action.Changes[0].Path
	isOther := func(c FileChange) bool { return c.Path != action.Path }
	if !slices.ContainsFunc(action.Changes, isOther) {
		for i := range action.Changes {
			action.Changes[i].Path = ""
		}
	}
	return action
}

// todoLine matches a line like "1. [completed] Read the code".
var todoLine = regexp.MustCompile(`^\s*(?:\d+[.)]|[-*])?\s*(?:\[([^\]]*)\])?\s*(.*)$`)

func todoList(p parameters) ActionType {
	action := ActionType{Action: TodoManagement}
	for _, item := range p.objects("todos") {
		content, _ := item.text("content", "text", "title")
		status, _ := item.text("status")
		priority, _ := item.text("priority")
		action.Todos = append(action.Todos, Todo{Content: content, Status: status, Priority: priority})
	}
	text, ok := p.text("todos")
	if ok && len(action.Todos) == 0 {
		for line := range strings.Lines(text) {
			if m := todoLine.FindStringSubmatch(strings.TrimSpace(line)); m != nil && m[2] != "" {
				action.Todos = append(action.Todos, Todo{Content: m[2], Status: m[1]})
			}
		}
	}
	return actionIf(ok, action)
}

func fetchURL(p parameters) ActionType {
	url, ok := p.text("url")
	return actionIf(ok, ActionType{Action: WebFetch, URL: url})
}

func presentPlan(p parameters) ActionType {
	plan, hasPlan := p.text("plan", "spec", "title")
	reason, hasReason := p.text("reason")
	return actionIf(hasPlan || hasReason, ActionType{Action: PlanPresentation, Plan: plan, Description: reason})
}

func delegateTask(p parameters) ActionType {
	description, ok := p.text("description", "prompt")
	return actionIf(ok, ActionType{Action: Other, Description: description})
}

func actionIf(ok bool, action ActionType) ActionType {
	if !ok {
		return ActionType{}
	}
	return action
}

type parameters struct {
	fields map[string]json.RawMessage
	cwd    string
}

// text joins lists of strings by spaces.
func (p parameters) text(names ...string) (string, bool) {
	for _, name := range names {
		raw, ok := p.fields[name]
		if !ok || string(raw) == "null" {
			continue
		}
		var list []string
		if json.Unmarshal(raw, &list) == nil {
			return strings.Join(list, " "), true
		}
		if text, ok := stringOf(raw); ok {
			return text, true
		}
		return string(raw), true
	}
	return "", false
}

func (p parameters) path(names ...string) (string, bool) {
	text, ok := p.text(names...)
	return p.relative(text), ok
}

func (p parameters) relative(path string) string {
	if p.cwd == "" || !strings.HasPrefix(path, p.cwd) {
		return path
	}
	rest := strings.TrimPrefix(path, strings.TrimSuffix(p.cwd, "/"))
	if strings.Trim(rest, "/") == "" {
		return "."
	}
	if inside, ok := strings.CutPrefix(rest, "/"); ok {
		return inside
	}
	return path // a sibling whose name begins with cwd
}

func (p parameters) objects(names ...string) []parameters {
	for _, name := range names {
		var list []map[string]json.RawMessage
		if json.Unmarshal(p.fields[name], &list) != nil {
			continue
		}
		var objects []parameters
		for _, fields := range list {
			objects = append(objects, parameters{fields: fields, cwd: p.cwd})
		}
		return objects
	}
	return nil
}

// diff adds a missing final newline.
func diff(path, before, after string) string {
	before, after = wholeLines(before), wholeLines(after)
	unified, err := udiff.ToUnified(path, path, before, udiff.Lines(before, after), udiff.DefaultContextLines)
	if err != nil {
		return "" // unreachable: the edits come from this text
	}
	return unified
}

func wholeLines(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}

func stringOf(raw json.RawMessage) (text string, ok bool) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	err := json.Unmarshal(raw, &text)
	return text, err == nil
}

// valid turns invalid JSON, which Go callers can put into an event, into a string.
func valid(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || json.Valid(raw) {
		return raw
	}
	return encode(string(raw))
}

func encode(value any) json.RawMessage {
	raw, err := json.Marshal(value)
	if err != nil {
		return nil // unreachable: strings and numbers always marshal
	}
	return raw
}
