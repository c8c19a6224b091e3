package llm

import (
	"maps"

	"github.com/sashabaranov/go-openai"

	"github.com/seed-9ed7edd4/chronicle/event"
)

const (
	parameterModel             = "model"
	parameterStream            = "stream"
	parameterStreamOptions     = "stream_options"
	parameterTemperature       = "temperature"
	parameterMaxTokens         = "max_tokens"
	parameterMaxCompletion     = "max_completion_tokens"
	parameterTopP              = "top_p"
	parameterStop              = "stop"
	parameterSeed              = "seed"
	parameterRandomSeed        = "random_seed"
	parameterFrequencyPenalty  = "frequency_penalty"
	parameterPresencePenalty   = "presence_penalty"
	parameterReasoningEffort   = "reasoning_effort"
	parameterResponseFormat    = "response_format"
	parameterUser              = "user"
	parameterMetadata          = "metadata"
	parameterStore             = "store"
	parameterTools             = "tools"
	parameterToolChoice        = "tool_choice"
	parameterParallelToolCalls = "parallel_tool_calls"
)

// sampling are the parameters that reasoning models reject unless reasoning is off.
var sampling = []string{
	parameterTemperature, parameterTopP, parameterStop, parameterFrequencyPenalty, parameterPresencePenalty,
}

var penalties = []string{parameterFrequencyPenalty, parameterPresencePenalty}

func (t *Target) settings() event.RequestSettings { return t.defaults.Override(t.Settings) }

// parameters returns the JSON of a request without its messages.
func (t *Target) parameters() ([]byte, error) {
	fields, err := t.fields()
	if err != nil {
		return nil, err
	}
	return encode(fields)
}

// fields returns a request without its messages: the supported settings, the tools and the extra fields.
func (t *Target) fields() (map[string]any, error) {
	s := t.settings()
	fields := map[string]any{parameterModel: t.Model, parameterStream: true}
	if !t.quirks.noStreamOptions {
		fields[parameterStreamOptions] = openai.StreamOptions{IncludeUsage: true}
	}
	add(fields, parameterTemperature, s.Temperature)
	add(fields, t.outputParameter(), s.MaxTokens)
	add(fields, parameterTopP, s.TopP)
	if s.Stop != nil {
		fields[parameterStop] = s.Stop
	}
	if t.quirks.randomSeed {
		add(fields, parameterRandomSeed, s.Seed)
	} else {
		add(fields, parameterSeed, s.Seed)
	}
	add(fields, parameterFrequencyPenalty, s.FrequencyPenalty)
	add(fields, parameterPresencePenalty, s.PresencePenalty)
	if s.ReasoningEffort != "" {
		fields[parameterReasoningEffort] = s.ReasoningEffort
	}
	if s.ResponseFormat != nil {
		fields[parameterResponseFormat] = t.responseFormat(*s.ResponseFormat)
	}
	t.addLabels(fields, s)
	t.addTools(fields, s)
	for _, name := range t.quirks.refuses {
		delete(fields, name)
	}
	if t.quirks.reasons && s.ReasoningEffort != event.ReasoningNone {
		for _, name := range sampling {
			delete(fields, name)
		}
	}
	for name, value := range s.Extra.Fields() {
		fields[name] = value
	}
	parameters, err := encode(fields)
	if err == nil && t.MaxOutput > 0 && outputLimit(parameters) == 0 {
		delete(fields, parameterMaxTokens) // an extra field may have a value that is no limit, such as null
		delete(fields, parameterMaxCompletion)
		fields[t.outputParameter()] = t.maxOutput()
	}
	for _, name := range t.lessons.named("-") {
		if s.Extra.Fields()[name] == nil {
			delete(fields, name)
		}
	}
	return fields, err
}

func (t *Target) outputParameter() string {
	if learned := t.lessons.named("+"); len(learned) > 0 {
		return learned[0]
	}
	if t.quirks.maxCompletionTokens {
		return parameterMaxCompletion
	}
	return parameterMaxTokens
}

func add[T any](fields map[string]any, name string, value *T) {
	if value != nil {
		fields[name] = *value
	}
}

func (t *Target) addLabels(fields map[string]any, s event.RequestSettings) {
	metadata := maps.Clone(s.Labels)
	if user, ok := metadata[event.LabelUser]; ok {
		fields[parameterUser] = user
		delete(metadata, event.LabelUser)
	}
	takes := t.quirks.metadata == metadataTaken ||
		t.quirks.metadata == metadataIfStored && string(s.Extra.Fields()[parameterStore]) == "true"
	if takes && len(metadata) > 0 {
		fields[parameterMetadata] = metadata
	}
}
