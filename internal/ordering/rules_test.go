package ordering_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/internal/ordering"
	"github.com/seed-9ed7edd4/chronicle/llm"
)

// Pieces of requests.
const (
	system  = `{"role":"system","content":"Be brief."}`
	user    = `{"role":"user","content":"Hi"}`
	answer  = `{"role":"assistant","content":"Yes"}`
	calling = `{"role":"assistant","content":null,"tool_calls":[` + called + `],"reasoning_content":"Hm"}`
	called  = `{"id":"abcdefghi","type":"function","function":{"name":"f","arguments":"{}"},"extra_content":{"google":{"thought_signature":"c2ln"}}}`
	result  = `{"role":"tool","content":"1","tool_call_id":"abcdefghi"}`
	tools   = `"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"a":{"type":"array","items":{}}}}}}]`
)

func body(fields string, messages ...string) []byte {
	if fields != "" {
		fields += ","
	}
	return []byte(`{` + fields + `"messages":[` + strings.Join(messages, ",") + `]}`)
}

// replaced returns a piece with a change.
func replaced(piece, old, new string) string {
	if !strings.Contains(piece, old) {
		panic(old)
	}
	return strings.Replace(piece, old, new, 1)
}

func TestAValidRequestHasNoViolation(t *testing.T) {
	conversations := map[string][]byte{
		"text":           body("", system, user, answer, user),
		"calls":          body(tools, system, user, calling, result),
		"an answer":      body(tools, system, user, calling, result, replaced(answer, `"Yes"`, `"Yes","reasoning_content":""`), user),
		"without system": body(tools, user, calling, result),
		"tool settings":  body(tools+`,"tool_choice":"auto","parallel_tool_calls":false`, user),
	}
	for name, request := range conversations {
		for _, provider := range append(llm.Presets(), "another") {
			if provider == "gemini" && strings.Contains(string(request), "parallel") {
				continue
			}
			require.Empty(t, ordering.Check(provider, request), "%s for %s", name, provider)
		}
	}
}

// TestEachRuleFindsItsViolation checks each rule with a valid request that was changed to violate
// it.
func TestEachRuleFindsItsViolation(t *testing.T) {
	second := replaced(called, "abcdefghi", "bcdefghij")
	bad := map[string][]byte{
		"openai/messages":             body(""),
		"openai/content":              body("", replaced(user, `"Hi"`, `" "`)),
		"openai/calls-of-assistant":   body(tools, replaced(calling, "assistant", "user"), result),
		"openai/results-follow-calls": body(tools, user, calling, user),
		"openai/results-have-calls":   body(tools, user, calling, result, replaced(result, "abcdefghi", "bcdefghij")),
		"openai/call-ids":             body(tools, user, replaced(calling, called, called+","+called), result, result),
		"openai/call-functions":       body(tools, user, replaced(calling, `"name":"f"`, `"name":"f.g"`), result),
		"openai/tools":                body(replaced(tools, `"name":"f"`, `"name":"f/g"`), user),
		"openai/tool-schemas":         body(replaced(tools, `,"items":{}`, ``), user),
		"openai/tool-settings":        body(`"tool_choice":"none"`, user),

		"anthropic/first-role":     body("", system, answer, user),
		"anthropic/last-role":      body("", user, answer),
		"anthropic/text":           body("", replaced(user, `"Hi"`, `[{"type":"text","text":"Hi"},{"type":"text","text":" "}]`)),
		"anthropic/unique-ids":     body(tools, user, calling, result, calling, result),
		"anthropic/tools-declared": body("", user, calling, result),
		"anthropic/input":          body(tools, user, replaced(calling, `"{}"`, `"1"`), result),

		"gemini/first-role":     body("", system, answer, user),
		"gemini/call-turn":      body(tools, user, answer, calling, result),
		"gemini/response-count": body(tools, user, replaced(calling, called, called+","+second), result),
		"gemini/last-role":      body("", user, answer),
		"gemini/signatures":     body(tools, user, replaced(calling, `"c2ln"`, `""`), result),
		"gemini/names":          body(replaced(tools, `"name":"f"`, `"name":"9f"`), user),
		"gemini/args":           body(tools, user, replaced(calling, `"{}"`, `"[]"`), result),
		"gemini/schemas":        body(replaced(tools, `"items":{}`, `"items":{"const":1}`), user),

		"mistral/order":        body(tools, user, calling, result, user),
		"mistral/last-role":    body("", user, answer),
		"mistral/only-message": body("", answer),
		"mistral/answer":       body("", user, `{"role":"assistant","content":null}`, user),
		"mistral/ids":          body(tools, user, replaced(calling, "abcdefghi", "call_1234"), replaced(result, "abcdefghi", "call_1234")),
		"mistral/results":      body(tools, user, calling, result, result),

		"deepseek/content":     body(tools, user, replaced(calling, `"content":null,`, ``), result),
		"deepseek/last-role":   body("", user, answer),
		"deepseek/reasoning":   body(tools, user, calling, result, answer, user),
		"deepseek/tool-choice": body(tools+`,"tool_choice":"required"`, user),

		"templates/system":    body("", user, system),
		"templates/alternate": body("", user, user),
	}
	providers := map[string]string{"templates": "vllm"}
	for _, rule := range ordering.Rules() {
		t.Run(rule.Name, func(t *testing.T) {
			require.Regexp(t, `^https://`, rule.Source)
			request, ok := bad[rule.Name]
			require.True(t, ok, "the rule has no row")
			delete(bad, rule.Name)
			provider, _, _ := strings.Cut(rule.Name, "/")
			if other, ok := providers[provider]; ok {
				provider = other
			}
			found := false
			for _, violation := range ordering.Check(provider, request) {
				found = found || violation.Rule.Name == rule.Name
			}
			require.True(t, found, "%s", request)
		})
	}
	require.Empty(t, bad)
}

func TestMoreViolations(t *testing.T) {
	for want, request := range map[string][]byte{
		"openai/messages":      []byte(`[]`),
		"openai/tool-schemas ": body(replaced(tools, `"type":"object"`, `"type":"object","anyOf":[{}]`), user),
		"openai/tool-settings": body(tools+`,"tool_choice":{"type":"function","function":{"name":"g"}}`, user),
		"openai/tools":         body(fmt.Sprintf(`"tools":[%s]`, strings.TrimSuffix(strings.Repeat(`{"type":"function","function":{"name":"f"}},`, 2), ",")), user),
	} {
		var names []string
		for _, violation := range ordering.Check("another", request) {
			names = append(names, violation.Rule.Name)
			require.Contains(t, violation.String(), violation.Problem)
		}
		require.Contains(t, names, strings.TrimSpace(want))
	}
	require.Empty(t, ordering.Check("gemini", body(`"model":"gemini-2.5-flash",`+tools, user, replaced(calling, `"c2ln"`, `""`), result)),
		"signatures are optional before Gemini 3")
}

func TestEachPresetHasRules(t *testing.T) {
	for _, provider := range llm.Presets() {
		require.NotEmpty(t, ordering.Check(provider, body("")), provider)
	}
}

func TestMessageNumbersCountTheSystemMessage(t *testing.T) {
	for provider, request := range map[string][]byte{
		"gemini": body(tools, system, user, answer, calling, result),
		"vllm":   body("", system, user, answer, answer, user),
	} {
		violations := ordering.Check(provider, request)
		require.Len(t, violations, 1, provider)
		require.Contains(t, violations[0].Problem, "message 3 ", provider)
	}
}
