package openai

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
)

// common are the fields that requests for responses and for chat completions share.
type common struct {
	Model             string            `json:"model"`
	Stream            bool              `json:"stream"`
	Store             *bool             `json:"store"`
	Metadata          map[string]string `json:"metadata"`
	Temperature       *float64          `json:"temperature"`
	TopP              *float64          `json:"top_p"`
	ParallelToolCalls *bool             `json:"parallel_tool_calls"`
	ToolChoice        json.RawMessage   `json:"tool_choice"`
	Tools             []tool            `json:"tools"`
	User              string            `json:"user"`
	SafetyIdentifier  string            `json:"safety_identifier"`
	TopLogprobs       int               `json:"top_logprobs"`
	StreamOptions     streamOptions     `json:"stream_options"`
}

// request is the body of a request for a response.
type request struct {
	common
	Input           json.RawMessage   `json:"input"`
	Instructions    *string           `json:"instructions"`
	Conversation    conversationParam `json:"conversation"`
	Previous        *string           `json:"previous_response_id"`
	Background      bool              `json:"background"`
	MaxOutputTokens *int              `json:"max_output_tokens"`
	Text            *textConfig       `json:"text"`
	Reasoning       *reasoning        `json:"reasoning"`
	Include         []string          `json:"include"`

	more *chatRequest // nil: the request is not for a chat completion
}

// tool is a function of the client, or a server of the worker.
type tool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  event.Object    `json:"parameters"`
	Function    *tool           `json:"function"` // of chat completions
	ServerLabel string          `json:"server_label"`
	ServerURL   string          `json:"server_url"`
	Allowed     json.RawMessage `json:"allowed_tools"`
	Approval    json.RawMessage `json:"require_approval"`
}

// conversationParam is an id, or an object with one.
type conversationParam string

func (c *conversationParam) UnmarshalJSON(data []byte) error {
	var of reference
	if json.Unmarshal(data, (*string)(c)) != nil {
		if err := json.Unmarshal(data, &of); err != nil {
			return err
		}
		*c = conversationParam(of.ID)
	}
	return nil
}

// settings returns the settings of the turn.
func (r *request) settings() (event.RequestSettings, error) {
	s := event.RequestSettings{
		Temperature: r.Temperature, TopP: r.TopP, MaxTokens: r.MaxOutputTokens, ParallelToolCalls: r.ParallelToolCalls,
	}
	if user := r.User + r.SafetyIdentifier; user != "" {
		s.Labels = map[string]string{event.LabelUser: user}
	}
	for i, name := range r.Include {
		switch {
		case name == "message.output_text.logprobs":
			return s, unsupported("include", "%s is not supported", name)
		case !slices.Contains(included, name):
			return s, gateway.BadRequest(fmt.Sprintf("include[%d]", i), "include %q is invalid (want %s)", event.Redact(name, 100), strings.Join(included, ", "))
		}
	}
	if r.TopLogprobs != 0 {
		return s, unsupported("top_logprobs", "top_logprobs is not supported")
	}
	var err error
	if s.ToolChoice, err = toolChoice(r.ToolChoice); err != nil {
		return s, err
	}
	if r.Reasoning != nil {
		if r.Reasoning.Effort != nil {
			s.ReasoningEffort = event.ReasoningEffort(*r.Reasoning.Effort)
		}
		if r.Reasoning.Summary != nil {
			if !slices.Contains([]string{"auto", "concise", "detailed"}, *r.Reasoning.Summary) {
				return s, gateway.BadRequest("reasoning.summary", "reasoning.summary %q is invalid (auto, concise or detailed)", event.Redact(*r.Reasoning.Summary, 50))
			}
			s.Reasoning = map[string]event.Reasoning{"detailed": event.ReasoningFull}[*r.Reasoning.Summary]
		}
	}
	if r.Text != nil {
		s.ResponseFormat = r.Text.Format.setting()
		if r.Text.Verbosity != nil {
			if !slices.Contains([]string{"low", "medium", "high"}, *r.Text.Verbosity) {
				field := map[bool]string{true: "verbosity", false: "text.verbosity"}[r.more != nil]
				return s, gateway.BadRequest(field, "verbosity %q is invalid (low, medium or high)", event.Redact(*r.Text.Verbosity, 50))
			}
			s.Extra, _ = json.Marshal(map[string]string{"verbosity": *r.Text.Verbosity}) // a string always encodes
		}
	}
	if r.more != nil {
		err = r.more.extend(&s)
	}
	return s, err
}

func (f format) setting() *event.ResponseFormat {
	if f.Type == "" || f.Type == event.FormatText {
		return nil
	}
	of := &event.ResponseFormat{Type: f.Type, Name: f.Name, Schema: f.Schema, Strict: f.Strict != nil && *f.Strict}
	if fields := f.Schema.Fields(); f.Description != "" && fields != nil && fields["description"] == nil {
		fields["description"] = mustJSON(f.Description)
		of.Schema, _ = json.Marshal(fields) // they were JSON
	}
	return of
}

// included are the values of include that ask for what is there anyway, for results of tools that are not supported, and
// for the encrypted reasoning, which the context keeps.
var included = []string{
	"reasoning.encrypted_content", "message.input_image.image_url", "file_search_call.results", "web_search_call.results",
	"web_search_call.action.sources", "computer_call_output.output.image_url", "code_interpreter_call.outputs",
}

// namedTool is a choice of a tool.
type namedTool struct {
	Type     string     `json:"type"`
	Name     string     `json:"name"`
	Function *namedTool `json:"function"` // of chat completions
}

func toolChoice(raw json.RawMessage) (*event.ToolChoice, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var mode string
	if json.Unmarshal(raw, &mode) == nil {
		if !slices.Contains([]string{"auto", "none", "required"}, mode) {
			return nil, gateway.BadRequest("tool_choice", "tool_choice %q is invalid (auto, none, required or a function)", event.Redact(mode, 50))
		}
		return &event.ToolChoice{Mode: mode}, nil
	}
	var named namedTool
	if err := decode("tool_choice", raw, &named); err != nil {
		return nil, err
	}
	if named.Function != nil {
		named = *named.Function
	}
	return &event.ToolChoice{Name: named.Name}, nil
}

// setupTags are those of the events that setup returns.
var setupTags = []event.Tag{event.TagSetProviderConfig, event.TagSystemPrompt, event.TagSetTools}

// setup returns the events that make the settings of the context those of the request. What the request leaves out stays.
func (r *request) setup(now gateway.Setup, system *string) ([]event.Event, error) {
	var events []event.Event
	if r.Model != "" && r.Model != defaultModel {
		next := setModel(r.Model)
		if now.Provider.ProviderID != next.ProviderID || now.Provider.Model != next.Model {
			events = append(events, event.New(next))
		}
	}
	var next *event.SetTools
	if r.Tools != nil {
		functions, servers, rules, err := tools(r.Tools)
		if err != nil {
			return nil, err
		}
		if servers == nil {
			servers = slices.DeleteFunc(slices.Clone(now.Tools.Tools), event.Tool.IsClient)
			rules = now.Tools.Approve
		}
		next = new(now.Tools)
		next.Tools, next.Approve = slices.Concat(servers, functions), rules
	}
	others, err := now.With(system, next)
	return append(events, others...), err
}

// tools returns the functions of the client, and the tools of servers; nil for the latter: the request names none.
func tools(declared []tool) (functions, servers event.ToolList, rules event.ApprovalRules, err error) {
	for _, t := range declared {
		switch {
		case t.Type == "function" && t.Function != nil:
			functions = append(functions, event.Tool{Name: t.Function.Name, Description: t.Function.Description, Parameters: t.Function.Parameters})
		case t.Type == "function":
			functions = append(functions, event.Tool{Name: t.Name, Description: t.Description, Parameters: t.Parameters})
		case t.Type == "mcp" && t.ServerURL == "" && t.ServerLabel != "":
			var allowed []string
			if len(t.Allowed) > 0 && json.Unmarshal(t.Allowed, &allowed) != nil {
				return nil, nil, nil, unsupported("tools.allowed_tools", "want a list of names")
			}
			if allowed == nil {
				allowed = []string{"*"}
			}
			approval := ""
			if json.Unmarshal(t.Approval, &approval); len(t.Approval) > 0 && approval != "always" && approval != "never" {
				return nil, nil, nil, unsupported("tools.require_approval", "want always or never")
			}
			for _, name := range allowed {
				pattern := "mcp:" + t.ServerLabel + "/" + name
				if t.ServerLabel == "worker" {
					pattern = name
				}
				servers = append(servers, event.Tool{Pattern: pattern})
				if approval == "always" {
					rules = append(rules, event.ApprovalRule{Tool: pattern})
				}
			}
		default:
			return nil, nil, nil, unsupported("tools", "want tools of the type function, or mcp with the server_label of a server of the worker and without a server_url")
		}
	}
	return functions, servers, rules, nil
}

// record is what a response needs besides the log. It is a field of an event of its input, which the model does not see.
type record struct {
	Functions  []string          `json:"functions,omitempty"` // the tools that clients execute
	Metadata   map[string]string `json:"metadata,omitempty"`
	Previous   string            `json:"previous,omitempty"` // id of the response that it continues
	Background bool              `json:"background,omitempty"`
}

const recordField = "openai"

// attach adds the record to the newest event that can have it.
func (r record) attach(events []event.Event) {
	data, _ := json.Marshal(r) // strings always encode
	if string(data) == "{}" {
		return
	}
	for i, e := range slices.Backward(events) {
		switch e.Body.(type) {
		case event.UserMessage, event.ToolResult:
			events[i].Extra = map[string]json.RawMessage{recordField: data}
			return
		}
	}
}

func recordOf(e event.Event) (r record, ok bool) {
	data, ok := e.Extra[recordField]
	return r, ok && json.Unmarshal(data, &r) == nil
}

func setOf(names []string) map[string]bool {
	set := map[string]bool{}
	for _, name := range names {
		set[name] = true
	}
	return set
}
