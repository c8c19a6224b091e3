package offline

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/sashabaranov/go-openai"
)

// callCommand matches a message that asks for a tool call, with arguments in JSON.
var callCommand = regexp.MustCompile(`^/call\s+([A-Za-z0-9_-]+)\s*((?s:.*))$`)

func callIn(request openai.ChatCompletionRequest) (call openai.ToolCall, ok bool) {
	if len(request.Messages) == 0 || request.ToolChoice == "none" {
		return call, false
	}
	newest := len(request.Messages) - 1
	match := callCommand.FindStringSubmatch(strings.TrimSpace(read(request.Messages[newest]).text))
	if request.Messages[newest].Role != openai.ChatMessageRoleUser || match == nil {
		return call, false
	}
	isNamed := func(t openai.Tool) bool { return t.Function != nil && t.Function.Name == match[1] }
	if !slices.ContainsFunc(request.Tools, isNamed) {
		return call, false
	}
	return openai.ToolCall{
		Index: new(int), ID: fmt.Sprintf("call_%d", newest), Type: openai.ToolTypeFunction,
		Function: openai.FunctionCall{Name: match[1], Arguments: cmp.Or(match[2], "{}")},
	}, true
}

// newestResults describes the results of the newest calls, if they end the conversation.
func newestResults(messages []openai.ChatCompletionMessage) (sentences []string) {
	names := map[string]string{}
	for _, m := range slices.Backward(messages) {
		for _, call := range m.ToolCalls {
			names[call.ID] = call.Function.Name
		}
		if m.Role == openai.ChatMessageRoleAssistant {
			break
		}
	}
	for _, m := range slices.Backward(messages) {
		if m.Role != openai.ChatMessageRoleTool {
			break
		}
		sentences = append(sentences, fmt.Sprintf("The tool %s returned: %s.", names[m.ToolCallID], quote(read(m).text)))
	}
	slices.Reverse(sentences)
	return sentences
}
