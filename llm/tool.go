package llm

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sashabaranov/go-openai"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Tool is a function that a model may call.
type Tool struct {
	Name        string // 1 to 64 of A-Z a-z 0-9 _ -, unique in a request
	Description string
	Parameters  event.Object // JSON Schema of the arguments; empty: no arguments
}

// toolQuirks are deviations of a provider from the tool calling of the OpenAI API.
type toolQuirks struct {
	none              bool // no tools are offered, and earlier calls are sent as text
	needsState        bool // a call without its provider state is sent as text
	noChoice          bool // no tool_choice; if no tool may be called, none is offered
	noForcedChoice    bool // tool_choice can only be auto or none
	noNamedChoice     bool // tool_choice cannot name a tool; instead, only that tool is offered, with tool_choice "required"
	noParallel        bool // no parallel_tool_calls
	maxDescription    int  // in characters; 0: unlimited
	letterFirst       bool // names begin with a letter or an underscore
	openAPISchema     bool // schemas are those of OpenAPI 3.0, which differ from JSON Schema
	shortIDs          bool // ids of calls have nine characters, each a letter or a digit
	uniqueIDs         bool // ids of calls are unique in the request, and have only letters, digits, _ and -
	noUserAfterResult bool // an answer must follow the results of calls
}

// choice returns "" for the default mode, and no name unless a certain tool must be called.
func (t *Target) choice() (mode, name string) {
	if c := t.settings().ToolChoice; c != nil {
		return c.Mode, c.Name
	}
	return "", ""
}

func (t *Target) offersTools() bool {
	mode, _ := t.choice()
	return len(t.Tools) > 0 && !t.quirks.tools.none && !(t.quirks.tools.noChoice && mode == toolChoiceNone)
}

const (
	toolChoiceNone     = "none"
	toolChoiceRequired = "required"
)

func (t *Target) checkTools() *Error {
	bad := func(format string, args ...any) *Error {
		return &Error{ProviderID: t.ProviderID, Kind: KindBadRequest, Message: t.clean(fmt.Sprintf(format, args...), maxMessage)}
	}
	var names []string
	for _, tool := range t.Tools {
		switch {
		case tool.Name != wireName(tool.Name):
			return bad("the name of the tool %q is invalid (want 1 to 64 of A-Z a-z 0-9 _ -)", tool.Name)
		case slices.Contains(names, tool.Name):
			return bad("the tool %q is offered twice", tool.Name)
		case len(tool.Parameters) > 0 && tool.Parameters.Fields() == nil && string(tool.Parameters) != "{}":
			return bad("the parameters of the tool %q are not a JSON Schema (want an object)", tool.Name)
		}
		names = append(names, tool.Name)
	}
	if _, name := t.choice(); name != "" && t.offersTools() && !slices.Contains(names, name) {
		return bad("toolChoice names the tool %q, which is not offered (want one of %s)", name, strings.Join(names, ", "))
	}
	return nil
}

func (t *Target) addTools(fields map[string]any, s event.RequestSettings) {
	if !t.offersTools() {
		return
	}
	q := t.quirks.tools
	mode, name := t.choice()
	offered := t.Tools
	if q.noForcedChoice && !t.isThinkingOff(s) && (name != "" || mode == toolChoiceRequired) {
		mode, name = "", ""
	}
	if q.noNamedChoice && name != "" {
		offered = slices.DeleteFunc(slices.Clone(offered), func(tool Tool) bool { return tool.Name != name })
		mode, name = toolChoiceRequired, ""
	}
	tools := make([]any, len(offered))
	for i, tool := range offered {
		function := map[string]any{"name": q.toolName(tool.Name)}
		if tool.Description != "" {
			function["description"] = q.description(tool.Description)
		}
		if parameters := q.parameters(tool.Parameters, t.lessons.named("schema:")); parameters != nil {
			function["parameters"] = parameters
		}
		tools[i] = map[string]any{"type": openai.ToolTypeFunction, "function": function}
	}
	fields[parameterTools] = tools
	switch {
	case q.noChoice:
	case name != "":
		fields[parameterToolChoice] = map[string]any{"type": openai.ToolTypeFunction, "function": map[string]string{"name": q.toolName(name)}}
	case mode != "":
		fields[parameterToolChoice] = mode
	}
	if !q.noParallel {
		add(fields, parameterParallelToolCalls, s.ParallelToolCalls)
	}
}

// DeepSeek accepts a forced tool call only if an extra field turns its reasoning off.
func (t *Target) isThinkingOff(s event.RequestSettings) bool {
	return valueOf(s.Extra.Fields()["thinking"]).field("type").text() == "disabled"
}

func (q toolQuirks) description(text string) string {
	if q.maxDescription == 0 || utf8.RuneCountInString(text) <= q.maxDescription {
		return text
	}
	return string([]rune(text)[:q.maxDescription-1]) + "…"
}

func (q toolQuirks) toolName(name string) string {
	name = wireName(name)
	if first := name[0]; q.letterFirst && (first == '-' || first >= '0' && first <= '9') {
		name = "_" + name[:min(len(name), 63)]
	}
	return name
}

// calledName returns the original name of the tool that the model calls by its adapted name.
func (t *Target) calledName(name string) string {
	bare := strings.TrimPrefix(name, "functions.") // gpt-oss and Kimi repeat the namespace of their prompts
	for _, tool := range t.Tools {
		if adapted := t.quirks.tools.toolName(tool.Name); adapted == name || adapted == bare {
			return tool.Name
		}
	}
	return wireName(name)
}
