package openai

import (
	"cmp"
	"errors"
	"regexp"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
)

// names are the fields of requests by the settings of an event.
var names = map[string]string{
	"maxTokens": "max_output_tokens", "topP": "top_p", "toolChoice": "tool_choice", "parallelToolCalls": "parallel_tool_calls",
	"reasoningEffort": "reasoning.effort", "responseFormat": "text.format", "labels": "user",
	"frequencyPenalty": "frequency_penalty", "presencePenalty": "presence_penalty",
}

// chatNames are those of chat completions that differ.
var chatNames = map[string]string{
	"maxTokens": "max_tokens", "reasoningEffort": "reasoning_effort", "responseFormat": "response_format.json_schema",
}

// fieldNames are the fields of requests by the event that they become.
var fieldNames = map[event.Tag]string{
	event.TagSystemPrompt: "instructions", event.TagSetTools: "tools", event.TagSetProviderConfig: "model", event.TagSetDetails: "metadata",
}

// rejectedField finds the field in the reason of an [event.InputRejected].
var rejectedField = regexp.MustCompile(`(\w+Event)\.(\S+): (.*)`)

// named makes an error about a field of an event one about the field of the request; messages are those of the field
// input. Chat is nil, or the request for a chat completion.
func named(err error, input string, chat *chatRequest) error {
	var of *event.FieldError
	if !errors.As(err, &of) {
		found := rejectedField.FindStringSubmatch(err.Error())
		if found == nil || !errors.Is(err, client.ErrRefused) {
			return err
		}
		of = &event.FieldError{Tag: event.Tag(found[1]), Field: found[2], Problem: found[3]}
	}
	field := cmp.Or(fieldNames[of.Tag], input)
	if chat != nil && of.Tag == event.TagSystemPrompt {
		field = input
	}
	if setting, ok := strings.CutPrefix(of.Field, "settings."); ok {
		setting, rest, _ := strings.Cut(setting, ".")
		field = cmp.Or(names[setting], setting)
		if chat != nil {
			field = cmp.Or(chatNames[setting], field)
		}
		if setting == "maxTokens" && chat != nil && chat.MaxCompletion != nil {
			field = "max_completion_tokens"
		}
		if setting == "responseFormat" {
			field = join(field, rest)
		}
	}
	return gateway.BadRequest(field, "%s: %s", field, of.Problem)
}
