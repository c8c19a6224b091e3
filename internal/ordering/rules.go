package ordering

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Rule is a rule of a provider.
type Rule struct {
	Name   string // family of the provider and name, such as mistral/last-role
	Source string // documentation of the rule, or a report of the error
	check  check
}

const (
	openai    = "openai"
	anthropic = "anthropic"
	gemini    = "gemini"
	mistral   = "mistral"
	deepseek  = "deepseek"
	templates = "templates"
)

// families lists, for each preset, the families whose rules apply. OpenRouter accepts and forwards OpenAI's form.
var families = map[string][]string{
	"openai":     {openai},
	"openrouter": {openai},
	"groq":       {openai},
	"cerebras":   {openai},
	"together":   {openai},
	"ollama":     {openai},
	"anthropic":  {openai, anthropic},
	"gemini":     {openai, gemini},
	"mistral":    {openai, mistral},
	"deepseek":   {openai, deepseek},
	"vllm":       {openai, templates},
	"llamacpp":   {openai, templates},
}

const (
	openaiChat      = "https://platform.openai.com/docs/api-reference/chat/create"
	openaiCalls     = "https://platform.openai.com/docs/guides/function-calling"
	openaiSchemas   = "https://platform.openai.com/docs/guides/structured-outputs#supported-schemas"
	anthropicAPI    = "https://docs.anthropic.com/en/api/messages"
	anthropicTools  = "https://docs.anthropic.com/en/docs/agents-and-tools/tool-use/implement-tool-use"
	geminiCalls     = "https://ai.google.dev/gemini-api/docs/function-calling"
	geminiReported  = "https://github.com/google-gemini/gemini-cli/issues/11814"
	geminiThoughts  = "https://ai.google.dev/gemini-api/docs/thought-signatures"
	geminiSchemas   = "https://ai.google.dev/api/caching#Schema"
	mistralRules    = "https://github.com/mistralai/mistral-common/blob/main/src/mistral_common/protocol/instruct/validator.py"
	deepseekChat    = "https://api-docs.deepseek.com/api/create-chat-completion"
	deepseekThought = "https://api-docs.deepseek.com/guides/thinking_mode"
	chatTemplates   = "https://huggingface.co/docs/transformers/chat_templating"
)

var (
	namePattern    = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	geminiName     = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$`)
	anthropicID    = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
	mistralID      = regexp.MustCompile(`^[a-zA-Z0-9]{9}$`)
	openaiRoles    = []string{"system", "developer", "user", "assistant", "tool"}
	mistralFollows = map[string][]string{
		"system":    {"system", "user", "assistant"},
		"user":      {"system", "user", "assistant"},
		"assistant": {"user", "assistant", "tool"},
		"tool":      {"assistant", "tool"},
	}
	combinators = []string{"oneOf", "anyOf", "allOf", "enum", "not"}
	geminiKnown = []string{
		"type", "format", "title", "description", "nullable", "enum", "maxItems", "minItems", "properties", "required", "minProperties",
		"maxProperties", "minLength", "maxLength", "pattern", "example", "anyOf", "propertyOrdering", "default", "items", "minimum", "maximum",
	}
)

var rules = []Rule{
	{"openai/messages", openaiChat, func(r request, report func(string, ...any)) {
		if len(r.Messages) == 0 {
			report("there are no messages")
		}
		for i, m := range r.Messages {
			if !slices.Contains(openaiRoles, m.Role) {
				report("message %d has the unknown role %q", i, m.Role)
			}
		}
	}},
	{"openai/content", openaiChat, messages("it has no content", func(r request, m message) bool {
		return m.isBlank() && (!m.isAnswer() || len(m.ToolCalls) == 0)
	})},
	{"openai/calls-of-assistant", openaiChat, messages("it has tool calls, and is no answer", func(r request, m message) bool {
		return len(m.ToolCalls) > 0 && !m.isAnswer()
	})},
	{"openai/results-follow-calls", openaiCalls, func(r request, report func(string, ...any)) {
		for i, m := range r.Messages {
			open := map[string]bool{}
			for _, c := range m.ToolCalls {
				open[c.ID] = true
			}
			for j := i + 1; len(open) > 0; j++ {
				if j == len(r.Messages) || r.Messages[j].Role != "tool" {
					report("message %d has tool calls without a result directly after it", i)
					break
				}
				delete(open, r.Messages[j].ToolCallID)
			}
		}
	}},
	{"openai/results-have-calls", openaiChat, func(r request, report func(string, ...any)) {
		for i, m := range r.Messages {
			if m.Role != "tool" {
				continue
			}
			j := i
			for j > 0 && r.Messages[j].Role == "tool" {
				j--
			}
			answers := func(c call) bool { return c.ID == m.ToolCallID }
			if !slices.ContainsFunc(r.Messages[j].ToolCalls, answers) {
				report("message %d is a result without a call in the answer before it", i)
			}
		}
	}},
	{"openai/call-ids", openaiChat, func(r request, report func(string, ...any)) {
		for i, m := range r.Messages {
			seen := map[string]bool{}
			for _, c := range m.ToolCalls {
				if c.ID == "" || utf8.RuneCountInString(c.ID) > 40 || seen[c.ID] {
					report("message %d has a call with the id %q, want 1 to 40 characters, unique", i, c.ID)
				}
				seen[c.ID] = true
			}
		}
	}},
	{"openai/call-functions", openaiCalls, calls("want type function, a name of 1 to 64 of a-z A-Z 0-9 _ -, and arguments in a string", func(c call) bool {
		var text string
		return c.Type != "function" || !namePattern.MatchString(c.Function.Name) || json.Unmarshal(c.Function.Arguments, &text) != nil
	})},
	{"openai/tools", openaiCalls, func(r request, report func(string, ...any)) {
		seen := map[string]bool{}
		for _, t := range r.Tools {
			if t.Type != "function" || !namePattern.MatchString(t.Function.Name) || seen[t.Function.Name] {
				report("the tool %q of type %q, want type function and a name of 1 to 64 of a-z A-Z 0-9 _ -, unique", t.Function.Name, t.Type)
			}
			seen[t.Function.Name] = true
		}
		if len(r.Tools) > 128 {
			report("%d tools, want at most 128", len(r.Tools))
		}
	}},
	{"openai/tool-schemas", openaiSchemas, func(r request, report func(string, ...any)) {
		for _, t := range r.Tools {
			if len(t.Function.Parameters) == 0 {
				continue
			}
			var schema map[string]any
			if json.Unmarshal(t.Function.Parameters, &schema) != nil || schema["type"] != "object" || schema["properties"] == nil {
				report("the schema of %q is not an object with properties", t.Function.Name)
			}
			for _, name := range combinators {
				if schema[name] != nil {
					report("the schema of %q has %s at the top", t.Function.Name, name)
				}
			}
			walk(schema, func(schema map[string]any) {
				if schema["type"] == "array" && schema["items"] == nil && schema["prefixItems"] == nil {
					report("the schema of %q has an array without items", t.Function.Name)
				}
			})
		}
	}},
	{"openai/tool-settings", openaiChat, func(r request, report func(string, ...any)) {
		mode, name := r.choice()
		if len(r.Tools) == 0 && (mode != "" || name != "" || r.Parallel != nil) {
			report("tool_choice or parallel_tool_calls without tools")
		}
		isNamed := func(t tool) bool { return t.Function.Name == name }
		if name != "" && !slices.ContainsFunc(r.Tools, isNamed) {
			report("tool_choice names %q, which the request does not offer", name)
		}
	}},

	{"anthropic/first-role", anthropicAPI, first("user")},
	{"anthropic/last-role", anthropicAPI, last("system", "user", "tool")}, // newer models do not continue an answer
	{"anthropic/text", anthropicAPI, messages("it has a text that is only white space", func(r request, m message) bool {
		return slices.ContainsFunc(m.parts(), func(p part) bool { return p.Type == "text" && strings.TrimSpace(p.Text) == "" })
	})},
	{"anthropic/unique-ids", anthropicTools, func(r request, report func(string, ...any)) {
		seen := map[string]bool{}
		for i, m := range r.Messages {
			for _, c := range m.ToolCalls {
				if seen[c.ID] || !anthropicID.MatchString(c.ID) {
					report("message %d has a call with the id %q, want one of a-z A-Z 0-9 _ - that is unique in the request", i, c.ID)
				}
				seen[c.ID] = true
			}
		}
	}},
	{"anthropic/tools-declared", anthropicTools, messages("it has a tool call or result, and the request has no tools", func(r request, m message) bool {
		return len(r.Tools) == 0 && (len(m.ToolCalls) > 0 || m.Role == "tool")
	})},
	{"anthropic/input", anthropicTools, objectArguments},

	{"gemini/first-role", geminiCalls, first("user")},
	{"gemini/call-turn", geminiReported, func(r request, report func(string, ...any)) {
		all := r.withoutSystem()
		first := len(r.Messages) - len(all)
		for i, m := range all {
			if len(m.ToolCalls) > 0 && (i == 0 || all[i-1].Role != "user" && all[i-1].Role != "tool") {
				report("function calls in message %d follow neither a user message nor a result", first+i)
			}
		}
	}},
	{"gemini/response-count", geminiCalls, func(r request, report func(string, ...any)) {
		for i, m := range r.Messages {
			results := 0
			for j := i + 1; j < len(r.Messages) && r.Messages[j].Role == "tool"; j++ {
				results++
			}
			if m.Role != "tool" && results != len(m.ToolCalls) {
				report("message %d has %d calls and %d responses", i, len(m.ToolCalls), results)
			}
		}
	}},
	{"gemini/last-role", "https://github.com/crewAIInc/crewAI/pull/6973", last("system", "user", "tool")},
	{"gemini/signatures", geminiThoughts, func(r request, report func(string, ...any)) {
		if strings.Contains(r.Model, "gemini-2") || strings.Contains(r.Model, "gemini-1") {
			return // optional
		}
		turns := r.turns()
		for _, m := range turns[len(turns)-1] {
			if len(m.ToolCalls) > 0 && m.ToolCalls[0].Extra.Google.Signature == "" {
				report("the first function call of a step of the current turn has no thought signature")
			}
		}
	}},
	{"gemini/names", geminiCalls, func(r request, report func(string, ...any)) {
		var names []string
		for _, t := range r.Tools {
			names = append(names, t.Function.Name)
		}
		for _, m := range r.Messages {
			for _, c := range m.ToolCalls {
				names = append(names, c.Function.Name)
			}
		}
		for _, name := range names {
			if !geminiName.MatchString(name) {
				report("the function %q, want 1 to 64 of a-z A-Z 0-9 _ . : -, first a letter or an underscore", name)
			}
		}
	}},
	{"gemini/args", geminiCalls, objectArguments},
	{"gemini/schemas", geminiSchemas, func(r request, report func(string, ...any)) {
		for _, t := range r.Tools {
			var schema map[string]any
			if json.Unmarshal(t.Function.Parameters, &schema) != nil {
				continue
			}
			if properties, _ := schema["properties"].(map[string]any); len(properties) == 0 {
				report("the schema of %q has no properties", t.Function.Name)
			}
			walk(schema, func(schema map[string]any) {
				for name := range schema {
					if !slices.Contains(geminiKnown, name) {
						report("the schema of %q has the unsupported field %q", t.Function.Name, name)
					}
				}
			})
		}
	}},

	{"mistral/order", mistralRules, func(r request, report func(string, ...any)) {
		for i := 1; i < len(r.Messages); i++ {
			if before, now := r.Messages[i-1].Role, r.Messages[i].Role; !slices.Contains(mistralFollows[before], now) {
				report("unexpected role %q after role %q in message %d", now, before, i)
			}
		}
	}},
	{"mistral/last-role", mistralRules, func(r request, report func(string, ...any)) {
		if len(r.Messages) > 1 {
			last("user", "tool")(r, report)
		}
	}},
	{"mistral/only-message", mistralRules, func(r request, report func(string, ...any)) {
		if len(r.Messages) == 1 {
			last("user", "system")(r, report)
		}
	}},
	{"mistral/answer", mistralRules, messages("it has neither content nor tool calls", func(r request, m message) bool {
		return m.isAnswer() && len(m.parts()) == 0 && len(m.ToolCalls) == 0
	})},
	{"mistral/ids", mistralRules, messages("it has a tool call id that is not of nine a-z, A-Z, 0-9", func(r request, m message) bool {
		return m.Role == "tool" && !mistralID.MatchString(m.ToolCallID) ||
			slices.ContainsFunc(m.ToolCalls, func(c call) bool { return !mistralID.MatchString(c.ID) })
	})},
	{"mistral/results", mistralRules, func(r request, report func(string, ...any)) {
		expected, observed := map[string]bool{}, map[string]bool{}
		compare := func(i int) {
			if len(expected) != len(observed) {
				report("%d function calls and %d responses before message %d", len(expected), len(observed), i)
			}
			expected, observed = map[string]bool{}, map[string]bool{}
		}
		for i, m := range r.Messages {
			switch m.Role {
			case "tool":
				if observed[m.ToolCallID] || !expected[m.ToolCallID] {
					report("message %d is a second or unexpected result for %q", i, m.ToolCallID)
				}
				observed[m.ToolCallID] = true
			case "assistant":
				compare(i)
				for _, c := range m.ToolCalls {
					if expected[c.ID] {
						report("duplicate tool call id %q in message %d", c.ID, i)
					}
					expected[c.ID] = true
				}
			}
		}
		compare(len(r.Messages))
	}},

	{"deepseek/content", deepseekChat, messages("its content is no string, nor null in an answer", func(r request, m message) bool {
		return m.Content == nil || !m.isString() && !(m.isNull() && m.isAnswer())
	})},
	{"deepseek/last-role", deepseekChat, last("user", "tool")},
	{"deepseek/reasoning", deepseekThought, func(r request, report func(string, ...any)) {
		for _, turn := range r.turns() {
			if !slices.ContainsFunc(turn, func(m message) bool { return len(m.ToolCalls) > 0 }) {
				continue
			}
			for _, m := range turn {
				if m.isAnswer() && m.Reasoning == nil {
					report("an answer in a turn with tool calls has no reasoning_content")
				}
			}
		}
	}},
	{"deepseek/tool-choice", "https://github.com/pydantic/pydantic-ai/pull/3644", func(r request, report func(string, ...any)) {
		if mode, name := r.choice(); r.Thinking.Type != "disabled" && (mode == "required" || name != "") {
			report("tool_choice forces a call in thinking mode")
		}
	}},

	{"templates/system", chatTemplates, func(r request, report func(string, ...any)) {
		for i, m := range r.Messages {
			if m.Role == "system" && i > 0 {
				report("message %d is a system message", i)
			}
		}
	}},
	{"templates/alternate", chatTemplates, func(r request, report func(string, ...any)) {
		all, before := r.withoutSystem(), "assistant"
		first := len(r.Messages) - len(all)
		for i, m := range all {
			if m.Role == before && m.Role != "tool" {
				report("message %d with the role %q is the first, or follows another with this role", first+i, m.Role)
			}
			before = m.Role
		}
	}},
}

type check func(r request, report func(format string, args ...any))

// messages rejects the messages that are bad.
func messages(problem string, isBad func(request, message) bool) check {
	return func(r request, report func(string, ...any)) {
		for i, m := range r.Messages {
			if isBad(r, m) {
				report("message %d with the role %s: %s", i, m.Role, problem)
			}
		}
	}
}

// calls rejects the calls that are bad.
func calls(problem string, isBad func(call) bool) check {
	return func(r request, report func(string, ...any)) {
		for i, m := range r.Messages {
			for _, c := range m.ToolCalls {
				if isBad(c) {
					report("message %d has the call %q of %q with %s: %s", i, c.ID, c.Function.Name, c.Function.Arguments, problem)
				}
			}
		}
	}
}

// first wants a role of the first message that is not of the system.
func first(role string) check {
	return func(r request, report func(string, ...any)) {
		if all := r.withoutSystem(); len(all) == 0 || all[0].Role != role {
			report("the first message does not have the role %s", role)
		}
	}
}

// last wants one of the roles of the last message.
func last(roles ...string) check {
	return func(r request, report func(string, ...any)) {
		if n := len(r.Messages); n > 0 && !slices.Contains(roles, r.Messages[n-1].Role) {
			report("the last message has the role %s, want one of %q", r.Messages[n-1].Role, roles)
		}
	}
}

var objectArguments = calls("the arguments are no object", func(c call) bool {
	_, isObject := c.arguments()
	return !isObject
})

func walk(schema map[string]any, visit func(map[string]any)) {
	visit(schema)
	inner := func(value any) {
		if schema, ok := value.(map[string]any); ok {
			walk(schema, visit)
		}
	}
	if properties, ok := schema["properties"].(map[string]any); ok {
		for _, property := range properties {
			inner(property)
		}
	}
	inner(schema["items"])
	for _, name := range []string{"anyOf", "oneOf", "allOf", "prefixItems"} {
		list, _ := schema[name].([]any)
		for _, element := range list {
			inner(element)
		}
	}
}

// Rules returns all rules.
func Rules() []Rule { return slices.Clone(rules) }

// Violation is a rule that a request violates.
type Violation struct {
	Rule    Rule
	Problem string
}

func (v Violation) String() string {
	return fmt.Sprintf("%s: %s (%s)", v.Rule.Name, v.Problem, v.Rule.Source)
}

// Check returns the rules that the body of a request violates. The provider is the id of a preset
// of package llm; the rules of OpenAI apply to any other.
func Check(provider string, body []byte) (violations []Violation) {
	var r request
	if err := json.Unmarshal(body, &r); err != nil {
		return []Violation{{rules[0], fmt.Sprintf("the body is not a request: %v", err)}}
	}
	applied, ok := families[provider]
	if !ok {
		applied = []string{openai}
	}
	for _, rule := range rules {
		family, _, _ := strings.Cut(rule.Name, "/")
		if !slices.Contains(applied, family) {
			continue
		}
		rule.check(r, func(format string, args ...any) {
			violations = append(violations, Violation{rule, fmt.Sprintf(format, args...)})
		})
	}
	return violations
}
