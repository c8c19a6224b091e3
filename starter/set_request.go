package main

import (
	"encoding/json"
	"errors"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-9ed7edd4/chronicle/event"
)

type requestFlags struct {
	settings                      event.RequestSettings
	labels                        []string
	effort, reasoning, toolChoice string
	schemaFile, schemaName        string
	strict, jsonObject            bool
	extra                         string
}

func newSetRequestCommand(o *setOptions) *cobra.Command {
	var f requestFlags
	command := &cobra.Command{
		Use:   "request -n NAME [flags]",
		Short: "Set the request settings: sampling, reasoning, response format, labels",
		Long: `Set the settings of model requests. The command replaces all of them: an omitted
flag resets its setting to the provider's default, --reset all of them. "starter
send --settings" overrides them for one message.

Settings that the provider does not support are not sent to it.`,
		Example: `  starter set request -n demo --top-p 0.9 --stop END --label user=u-17
  starter set request -n demo --response-schema person.json --reasoning-effort low
  starter set request -n demo --tool-choice required --parallel-tool-calls=false
  starter set request -n demo --extra '{"top_k":40}'`,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := f.complete(command); err != nil {
				return err
			}
			return runSet(command.Context(), *o, event.SetRequestSettings(f.settings))
		},
	}
	flags, s := command.Flags(), &f.settings
	floatField(flags, &s.Temperature, "temperature", "", "sampling temperature, a `NUMBER` from 0 to 2; overrides \"set provider\"")
	intField(flags, &s.MaxTokens, "max-tokens", "", "maximum length of an answer in `TOKENS`, 1 to 10,000,000; overrides \"set provider\"")
	floatField(flags, &s.TopP, "top-p", "", "nucleus sampling, a `NUMBER` from 0 to 1")
	flags.StringArrayVar(&s.Stop, "stop", nil, "stop sequence, a `TEXT` before which the answer ends; may be repeated up to 4 times")
	int64Field(flags, &s.Seed, "seed", "sampling seed, an `INTEGER`")
	floatField(flags, &s.FrequencyPenalty, "frequency-penalty", "", "penalty for frequent tokens, a `NUMBER` from -2 to 2")
	floatField(flags, &s.PresencePenalty, "presence-penalty", "", "penalty for tokens that already occurred, a `NUMBER` from -2 to 2")
	flags.StringVar(&f.effort, "reasoning-effort", "", "reasoning `EFFORT`: "+oneOf(words(event.ReasoningEffort("").Values()))+"; not every model supports every value")
	flags.StringVar(&f.reasoning, "reasoning", "", "`AMOUNT` of reasoning to keep: summary (up to 16 KiB), full (up to 256 KiB) or off (default: summary)")
	flags.StringVar(&f.toolChoice, "tool-choice", "", "`CHOICE` of tools in the first step of a turn: auto, none, required, or the name of a tool")
	boolField(flags, &s.ParallelToolCalls, "parallel-tool-calls", "whether an answer may have several tool calls, true or false")
	flags.BoolVar(&f.jsonObject, "json-object", false, "answer with a JSON object")
	flags.StringVar(&f.schemaFile, "response-schema", "", "answer with JSON that matches the JSON Schema in `FILE`, at most 32 KiB")
	flags.StringVar(&f.schemaName, "schema-name", "", "`NAME` of the schema for the provider (default: answer)")
	flags.BoolVar(&f.strict, "strict", false, "let the provider reject a schema that it cannot enforce")
	flags.StringVar(&f.extra, "extra", "", "additional fields of the request, a `JSON` object of at most 16 KiB")
	flags.StringArrayVar(&f.labels, "label", nil, "request label for the provider, `NAME=VALUE`; the label user identifies the user; may be repeated up to 16 times")
	resetFlag(command)
	return command
}

// complete sets the settings that are not numbers or texts.
func (f *requestFlags) complete(command *cobra.Command) (err error) {
	s := &f.settings
	switch {
	case f.toolChoice != "":
		s.ToolChoice = event.ToolChoiceOf(f.toolChoice)
	case command.Flags().Changed("tool-choice"):
		return usagef("--tool-choice: want auto, none, required, or the name of a tool")
	}
	s.ReasoningEffort, s.Reasoning = event.ReasoningEffort(f.effort), event.Reasoning(f.reasoning)
	if f.extra != "" {
		if err := json.Unmarshal([]byte(f.extra), &s.Extra); err != nil {
			return usagef("--extra: want a JSON object")
		}
	}
	if s.Labels, err = parseLabels(f.labels); err != nil {
		return err
	}
	s.ResponseFormat, err = f.responseFormat()
	return err
}

// parseLabels returns nil for no labels.
func parseLabels(texts []string) (labels map[string]string, err error) {
	for _, label := range texts {
		name, value, ok := strings.Cut(label, "=")
		if !ok {
			return nil, usagef("--label %q: want NAME=VALUE", label)
		}
		if labels == nil {
			labels = map[string]string{}
		}
		if _, isSet := labels[name]; isSet {
			return nil, usagef("--label %q: the name is set twice", label)
		}
		labels[name] = value
	}
	return labels, nil
}

func (f *requestFlags) responseFormat() (*event.ResponseFormat, error) {
	switch {
	case f.schemaFile == "" && (f.schemaName != "" || f.strict):
		return nil, usagef("--schema-name, --strict: require --response-schema")
	case f.schemaFile != "" && f.jsonObject:
		return nil, usagef("--json-object: cannot be used with --response-schema")
	case f.jsonObject:
		return &event.ResponseFormat{Type: event.FormatJSONObject}, nil
	case f.schemaFile == "":
		return nil, nil
	}
	file, err := os.Open(f.schemaFile)
	if err != nil {
		return nil, usagef("--response-schema: %w", err)
	}
	defer file.Close()
	// The limit of the event does not count spaces.
	schema, err := readAtMost(file, 4*event.MaxSchemaBytes)
	if err != nil {
		return nil, usagef("--response-schema %s: %w", f.schemaFile, err)
	}
	format := &event.ResponseFormat{Type: event.FormatJSONSchema, Name: f.schemaName, Strict: f.strict}
	if err := json.Unmarshal(schema, &format.Schema); err != nil {
		return nil, usagef("--response-schema %s: want a JSON object", f.schemaFile)
	}
	return format, nil
}

// parseSettings decodes the JSON of request settings.
func parseSettings(flag, text string) (*event.RequestSettings, error) {
	settings := new(event.RequestSettings)
	if !strings.HasPrefix(strings.TrimSpace(text), "{") || !json.Valid([]byte(text)) {
		return nil, usagef(`%s: not a JSON object (want JSON like {"topP":0.9,"seed":7})`, flag)
	}
	err := event.DecodeSettings([]byte(text), settings)
	if err == nil {
		err = event.New(event.SetRequestSettings(*settings)).Validate()
	}
	if err != nil {
		return nil, usagef("%s: %w", flag, untagged(err))
	}
	return settings, nil
}

// untagged returns the error about a field without the tag of its event.
func untagged(err error) error {
	var field *event.FieldError
	if errors.As(err, &field) {
		return &event.FieldError{Field: field.Field, Problem: field.Problem}
	}
	return err
}
