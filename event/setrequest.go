package event

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// SetRequestSettings replaces all request settings of the context.
//
//doc:effect none; replaces all [request settings](#request-settings) of the context; without fields, resets them
type SetRequestSettings RequestSettings

const TagSetRequestSettings Tag = "SetRequestSettingsEvent"

func (SetRequestSettings) Tag() Tag { return TagSetRequestSettings }

func (b SetRequestSettings) validate() error { return RequestSettings(b).validate() }

// String describes the settings as [RequestSettings.String] does.
func (s SetRequestSettings) String() string { return RequestSettings(s).String() }

func (s SetRequestSettings) Words() (subject, text string) { return "set request", s.String() }
func (SetRequestSettings) Setting() string                 { return "Requests" }

func (SetRequestSettings) example() Body {
	return SetRequestSettings{
		Temperature: new(0.3), MaxTokens: new(1000), TopP: new(0.9), Stop: []string{"END"}, Seed: new(int64(7)),
		FrequencyPenalty: new(0.5), PresencePenalty: new(-0.5), Reasoning: ReasoningFull, ReasoningEffort: effortLow,
		ToolChoice: &ToolChoice{Mode: "auto"}, ParallelToolCalls: new(false),
		ResponseFormat: &ResponseFormat{Type: FormatJSONSchema, Name: "weather", Schema: Object(`{"type":"object"}`), Strict: true},
		Extra:          Object(`{"top_k":40}`), Labels: map[string]string{LabelUser: "u-17"},
	}
}

// RequestSettings are optional settings of requests. In a [UserMessage], unset fields have the value of
// the context; in a [SetRequestSettings], that of the [SetProviderConfig], and otherwise the provider's
// default. docs/operations.md lists the settings that are not sent to some providers.
type RequestSettings struct {
	// Overrides that of SetProviderConfigEvent.
	Temperature *float64 `json:"temperature,omitempty" schema:"min=0,max=MaxTemperature"`
	// The maximum length of an answer, in tokens. Overrides that of SetProviderConfigEvent.
	MaxTokens *int     `json:"maxTokens,omitempty" schema:"min=1,max=MaxMaxTokens"`
	TopP      *float64 `json:"topP,omitempty" schema:"min=0,max=1"` // 0 to 1
	// Stop sequences of at most 256 bytes. The answer ends before the first one that occurs.
	Stop []string `json:"stop,omitempty" schema:"min=1,max=MaxStops,items.min=1,items.max=MaxStopBytes"`
	Seed *int64   `json:"seed,omitempty" schema:"format=int64"`
	// FrequencyPenalty and PresencePenalty are between -[MaxPenalty] and [MaxPenalty].
	FrequencyPenalty *float64 `json:"frequencyPenalty,omitempty" schema:"min=-MaxPenalty,max=MaxPenalty"`
	PresencePenalty  *float64 `json:"presencePenalty,omitempty" schema:"min=-MaxPenalty,max=MaxPenalty"`
	// Not every model supports every value.
	ReasoningEffort ReasoningEffort `json:"reasoningEffort,omitempty"`
	// How much of the reasoning is kept: `summary`: up to 16 KiB; `full`: up to 256 KiB; `off`: none, and reasoning is
	// not streamed either.
	Reasoning Reasoning `json:"reasoning,omitempty"`
	// Applies to the first step of a turn, if tools are offered: a mode, or the tool that the model must call.
	ToolChoice *ToolChoice `json:"toolChoice,omitempty"`
	// Applies to requests that offer tools.
	ParallelToolCalls *bool           `json:"parallelToolCalls,omitempty"`
	ResponseFormat    *ResponseFormat `json:"responseFormat,omitempty"`
	// Additional fields of the request, at most [MaxExtraBytes] of JSON. They override the other settings. The fields that the
	// worker sets are rejected, in upper or lower case.
	Extra Object `json:"extra,omitempty" schema:"names.not=workerFields"`
	// Describe the request to the provider. The label `user` is sent as the field `user`, the others as `metadata` to
	// providers that support it. Names have at most 64 bytes, values 512.
	Labels map[string]string `json:"labels,omitempty" schema:"min=1,max=MaxLabels,names.is=Name,items.max=MaxLabelBytes"`
}

func (s RequestSettings) validate() error {
	if err := withinBounds("temperature", s.Temperature, 0, MaxTemperature); err != nil {
		return err
	}
	if s.MaxTokens != nil {
		if err := between("maxTokens", int64(*s.MaxTokens), 1, MaxMaxTokens); err != nil {
			return err
		}
	}
	if err := withinBounds("topP", s.TopP, 0, 1); err != nil {
		return err
	}
	if err := validateStop(s.Stop); err != nil {
		return err
	}
	if err := withinBounds("frequencyPenalty", s.FrequencyPenalty, -MaxPenalty, MaxPenalty); err != nil {
		return err
	}
	if err := withinBounds("presencePenalty", s.PresencePenalty, -MaxPenalty, MaxPenalty); err != nil {
		return err
	}
	if err := cmp.Or(knownOrNone("reasoningEffort", s.ReasoningEffort), knownOrNone("reasoning", s.Reasoning)); err != nil {
		return err
	}
	if s.ToolChoice != nil {
		if err := s.ToolChoice.validate(); err != nil {
			return err
		}
	}
	if s.ResponseFormat != nil {
		if err := s.ResponseFormat.validate(); err != nil {
			return err
		}
	}
	if err := validateExtra(s.Extra); err != nil {
		return err
	}
	return validateLabels(s.Labels)
}

// IsZero reports whether no field is set.
func (s RequestSettings) IsZero() bool { return reflect.ValueOf(s).IsZero() }

// Override returns the settings, with fields replaced by those that are set in other.
func (s RequestSettings) Override(other RequestSettings) RequestSettings {
	set(&s.Temperature, other.Temperature)
	set(&s.MaxTokens, other.MaxTokens)
	set(&s.TopP, other.TopP)
	if other.Stop != nil {
		s.Stop = other.Stop
	}
	set(&s.Seed, other.Seed)
	set(&s.FrequencyPenalty, other.FrequencyPenalty)
	set(&s.PresencePenalty, other.PresencePenalty)
	if other.ReasoningEffort != "" {
		s.ReasoningEffort = other.ReasoningEffort
	}
	if other.Reasoning != "" {
		s.Reasoning = other.Reasoning
	}
	set(&s.ToolChoice, other.ToolChoice)
	set(&s.ParallelToolCalls, other.ParallelToolCalls)
	set(&s.ResponseFormat, other.ResponseFormat)
	if other.Extra != nil {
		s.Extra = other.Extra
	}
	if other.Labels != nil {
		s.Labels = other.Labels
	}
	return s
}

// String describes the fields that are set: "temperature 0.3, top_p 0.9, seed 7".
func (s RequestSettings) String() string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if s.Temperature != nil {
		add("temperature %g", *s.Temperature)
	}
	if s.MaxTokens != nil {
		add("at most %d tokens", *s.MaxTokens)
	}
	if s.TopP != nil {
		add("top_p %g", *s.TopP)
	}
	for _, stop := range s.Stop {
		add("stop at %q", stop)
	}
	if s.Seed != nil {
		add("seed %d", *s.Seed)
	}
	if s.FrequencyPenalty != nil {
		add("frequency penalty %g", *s.FrequencyPenalty)
	}
	if s.PresencePenalty != nil {
		add("presence penalty %g", *s.PresencePenalty)
	}
	if s.ReasoningEffort != "" {
		add("reasoning effort %s", s.ReasoningEffort)
	}
	if s.Reasoning != "" {
		add("reasoning kept: %s", s.Reasoning)
	}
	if s.ToolChoice != nil {
		add("tool choice %s", s.ToolChoice)
	}
	if s.ParallelToolCalls != nil {
		add("parallel tool calls %t", *s.ParallelToolCalls)
	}
	if f := s.ResponseFormat; f != nil {
		add("%s", strings.TrimSpace("answers in "+f.Type+" "+f.Name))
	}
	if names := sortedNames(s.Extra.Fields()); len(names) > 0 {
		add("with the fields %s", strings.Join(names, " "))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Labels)) {
		add("label %s %q", name, s.Labels[name])
	}
	return cmp.Or(strings.Join(parts, ", "), "the defaults of the provider")
}

// Bounds of [RequestSettings].
const (
	MaxStops       = 4
	MaxStopBytes   = 256
	MaxPenalty     = 2
	MaxExtraBytes  = 16 << 10
	MaxSchemaBytes = 32 << 10 // of a JSON Schema
	MaxLabels      = 16
	MaxLabelBytes  = 512
	maxLabelName   = 64
)

// LabelUser is the label that is sent as the field user.
const LabelUser = "user"

// LabelTenant is the label of the budget of a tenant. In contexts of a tenant, its value is the tenant, whatever the
// settings say.
const LabelTenant = "tenant"

// workerFields are the fields of a request that only workers set.
const workerFields = "model|messages|stream|stream_options|tools|functions|function_call|n"

// ReasoningEffort controls how much a model reasons before it answers.
type ReasoningEffort string

// Efforts. Not every model supports every one.
const (
	ReasoningNone   ReasoningEffort = "none" // turns reasoning off
	effortMinimal   ReasoningEffort = "minimal"
	effortLow       ReasoningEffort = "low"
	effortMedium    ReasoningEffort = "medium"
	effortHigh      ReasoningEffort = "high"
	effortExtraHigh ReasoningEffort = "xhigh"
	effortMax       ReasoningEffort = "max"
)

// Values returns all efforts in ascending order.
func (ReasoningEffort) Values() []ReasoningEffort {
	return []ReasoningEffort{ReasoningNone, effortMinimal, effortLow, effortMedium, effortHigh, effortExtraHigh, effortMax}
}

// Reasoning is how much of a model's reasoning a context keeps.
type Reasoning string

// Values of a [Reasoning].
const (
	ReasoningSummary Reasoning = "summary" // the first 16 KiB
	ReasoningFull    Reasoning = "full"    // up to [MaxReasoningBytes]
	ReasoningOff     Reasoning = "off"     // neither streams nor keeps it; keeps provider state
)

// Values returns all values, the default first.
func (Reasoning) Values() []Reasoning {
	return []Reasoning{ReasoningSummary, ReasoningFull, ReasoningOff}
}

// ToolChoice is a mode ("auto", "none", "required"), or the name of a tool that must be called.
//
//schema:rules {"oneOf":[{"enum":["auto","none","required"]},{"$ref":"namedTool"}]}
type ToolChoice struct{ Mode, Name string }

func (c ToolChoice) validate() error {
	if c.Name != "" {
		return ValidateName("toolChoice.name", c.Name)
	}
	if !slices.Contains(toolChoices, c.Mode) {
		return fieldf("toolChoice", `want %s, or {"name":TOOL}, got %s`, strings.Join(toolChoices, ", "), quote(c.Mode))
	}
	return nil
}

func (ToolChoice) object() any { return namedTool{} }

// MarshalJSON writes a mode as a string and a tool as {"name":"weather"}.
func (c ToolChoice) MarshalJSON() ([]byte, error) {
	if c.Name != "" {
		return json.Marshal(namedTool{c.Name})
	}
	return json.Marshal(c.Mode)
}

// UnmarshalJSON reads the output of MarshalJSON. Validation reports any other JSON.
func (c *ToolChoice) UnmarshalJSON(data []byte) error {
	var tool namedTool
	*c = ToolChoice{}
	if json.Unmarshal(data, &c.Mode) != nil && json.Unmarshal(data, &tool) == nil {
		c.Name = tool.Name
	}
	return nil
}

func (c ToolChoice) String() string {
	if c.Name != "" {
		return c.Name
	}
	return c.Mode
}

// ToolChoiceNone is the mode in which the model must not call tools.
const ToolChoiceNone = "none"

var toolChoices = []string{"auto", ToolChoiceNone, "required"}

// ToolChoiceOf is the inverse of [ToolChoice.String].
func ToolChoiceOf(text string) *ToolChoice {
	if slices.Contains(toolChoices, text) {
		return &ToolChoice{Mode: text}
	}
	return &ToolChoice{Name: text}
}

type namedTool struct {
	Name string `json:"name" schema:"is=Name"`
}

// Types of a [ResponseFormat].
const (
	FormatText       = "text"
	FormatJSONObject = "json_object"
	FormatJSONSchema = "json_schema"

	formats = FormatText + "|" + FormatJSONObject + "|" + FormatJSONSchema
)

// ResponseFormat is the format of an answer. JSON answers are validated. An invalid answer is repaired once; a second invalid
// answer falls back or fails the request.
//
//schema:rules {"properties":{"name":{"pattern":"^[A-Za-z0-9_-]{0,64}$"}}}
//schema:rules {"if":{"properties":{"type":{"const":"json_schema"}}},"then":{"required":["schema"]}}
type ResponseFormat struct {
	Type string `json:"type" schema:"enum=formats"`
	Name string `json:"name,omitempty"` // the name of the schema; absent or empty: `answer`
	// The JSON Schema of the answer, at most [MaxSchemaBytes]. References to other documents are not loaded.
	Schema Object `json:"schema,omitempty"`
	// Whether the provider may reject schemas that it cannot enforce.
	Strict bool `json:"strict,omitempty"`
}

func (f ResponseFormat) validate() error {
	types := strings.Split(formats, "|")
	switch {
	case !slices.Contains(types, f.Type):
		return fieldf("responseFormat.type", "want %s, got %s", oneOf(types), quote(f.Type))
	case f.Type != FormatJSONSchema && (f.Schema != nil || f.Name != "" || f.Strict):
		return fieldf("responseFormat.type", "want %s, because schema, name or strict is set; got %s", FormatJSONSchema, f.Type)
	case f.Type != FormatJSONSchema:
		return nil
	case f.Name != "" && !schemaName(f.Name):
		return fieldf("responseFormat.name", "want 1 to 64 of A-Z a-z 0-9 _ -, got %s", quote(f.Name))
	case f.Schema == nil:
		return fieldf("responseFormat.schema", "missing (required for type %s)", FormatJSONSchema)
	}
	return f.Schema.validate("responseFormat.schema", MaxSchemaBytes)
}

// Object is a compact JSON object. Its names keep their order, which models follow in a schema.
//
//schema:rules {"type":"object"}
type Object json.RawMessage

func (o Object) validate(field string, maxBytes int) error {
	if len(o) > maxBytes {
		return fieldf(field, "%d bytes (at most %d)", len(o), maxBytes)
	}
	if !json.Valid(o) || o[0] != '{' {
		return fieldf(field, "want an object, got %s", describe(o))
	}
	if isTooDeep(o, maxNestingDepth) {
		return fieldf(field, "nested more than %d levels deep", maxNestingDepth)
	}
	return value(field, json.RawMessage(o))
}

// MarshalJSON implements [json.Marshaler].
func (o Object) MarshalJSON() ([]byte, error) { return json.RawMessage(o).MarshalJSON() }

// UnmarshalJSON accepts any JSON; validation accepts only objects.
func (o *Object) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		*o = nil
		return nil
	}
	kept, err := compact(data)
	*o = Object(kept)
	return err
}

// Fields returns the fields of the object; nil for a nil object.
func (o Object) Fields() map[string]json.RawMessage {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(o, &fields) // an event with another value is invalid
	return fields
}

func set[T any](field **T, value *T) {
	if value != nil {
		*field = value
	}
}

// withinBounds also rejects NaN.
func withinBounds(field string, value *float64, low, high int) error {
	if value != nil && !(*value >= float64(low) && *value <= float64(high)) {
		return fieldf(field, "want %d to %d, got %v", low, high, *value)
	}
	return nil
}

func validateStop(stop []string) error {
	if stop != nil && (len(stop) == 0 || len(stop) > MaxStops) {
		return fieldf("stop", "want 1 to %d texts, got %d", MaxStops, len(stop))
	}
	for _, s := range stop {
		if err := text("stop", s); err != nil {
			return err
		}
		if s == "" || len(s) > MaxStopBytes {
			return fieldf("stop", "want texts of 1 to %d bytes, got %d", MaxStopBytes, len(s))
		}
	}
	return nil
}

func schemaName(s string) bool {
	return len(s) <= 64 && !strings.ContainsFunc(s, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '-')
	})
}

func validateExtra(extra Object) error {
	if extra == nil {
		return nil
	}
	if err := extra.validate("extra", MaxExtraBytes); err != nil {
		return err
	}
	reserved := strings.Split(workerFields, "|")
	for _, name := range sortedNames(extra.Fields()) {
		// Some servers treat names as case-insensitive.
		if i := slices.IndexFunc(reserved, func(f string) bool { return strings.EqualFold(f, name) }); i >= 0 {
			return fieldf("extra."+reserved[i], "reserved for the worker (extra cannot set %s)", strings.Join(reserved, ", "))
		}
	}
	return nil
}

func validateLabels(labels map[string]string) error {
	if labels != nil && (len(labels) == 0 || len(labels) > MaxLabels) {
		return fieldf("labels", "want 1 to %d labels, got %d", MaxLabels, len(labels))
	}
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		if isKeyName(name) {
			return fieldf("labels", "a raw key is not allowed")
		}
		if err := ValidateName("labels", name); err != nil || len(name) > maxLabelName {
			return fieldf("labels", "want names of 1 to %d bytes without control characters, got %s", maxLabelName, quote(name))
		}
		if err := text("labels", labels[name]); err != nil || len(labels[name]) > MaxLabelBytes {
			return fieldf("labels", "want values of at most %d bytes of UTF-8, got %d for %s", MaxLabelBytes, len(labels[name]), quote(name))
		}
	}
	return nil
}
