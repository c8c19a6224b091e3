package tool_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/tool"
)

type place struct {
	City string `json:"city" jsonschema:"the name of a city"`
	Days int    `json:"days,omitempty" jsonschema:"the number of days"`
}

func weather(_ context.Context, in place) (string, error) { return "sunny in " + in.City, nil }

func TestParametersAreDerivedFromTheInput(t *testing.T) {
	type inner struct {
		Exact bool `json:"exact"`
	}
	type everything struct {
		Query   string            `json:"query" jsonschema:"what to find"`
		Tags    []string          `json:"tags"`
		Labels  map[string]string `json:"labels,omitempty"`
		Inner   inner             `json:"inner"`
		Pointer *inner            `json:"pointer"`
		Limit   *int              `json:"limit"`
		Since   time.Time         `json:"since,omitzero"`
		Hidden  string            `json:"-"`
		private string
	}
	_ = everything{}.private
	parametersOf := func(made tool.Tool, err error) string {
		require.NoError(t, err)
		return string(made.Spec().Parameters)
	}
	require.JSONEq(t, `{"type":"object","required":["city"],"additionalProperties":false,"properties":{
		"city":{"type":"string","description":"the name of a city"},
		"days":{"type":"integer","description":"the number of days"}}}`, parametersOf(tool.New("weather", "Weather", weather)))
	require.JSONEq(t, `{"type":"object","required":["query","tags","inner"],"additionalProperties":false,"properties":{
		"query":{"type":"string","description":"what to find"},
		"tags":{"type":"array","items":{"type":"string"}},
		"labels":{"type":"object","additionalProperties":{"type":"string"}},
		"inner":{"type":"object","required":["exact"],"additionalProperties":false,"properties":{"exact":{"type":"boolean"}}},
		"pointer":{"type":"object","required":["exact"],"additionalProperties":false,"properties":{"exact":{"type":"boolean"}}},
		"limit":{"type":"integer"},
		"since":{"type":"string"}}}`,
		parametersOf(tool.New("everything", "Everything", func(context.Context, everything) (string, error) { return "", nil })))
	require.Equal(t, `{"type":"object","properties":{},"additionalProperties":false}`,
		parametersOf(tool.New("now", "Now", func(context.Context, struct{}) (string, error) { return "", nil })))
	require.JSONEq(t, `{"type":"object","additionalProperties":{"type":"integer"}}`,
		parametersOf(tool.New("sum", "Sum", func(context.Context, map[string]int) (int, error) { return 0, nil })))
}

func TestParametersKeepTheOrderOfFields(t *testing.T) {
	type ordered struct {
		Zebra, Apple, Mango string
	}
	made, err := tool.New("ordered", "Ordered", func(context.Context, ordered) (string, error) { return "", nil })
	require.NoError(t, err)
	parameters := string(made.Spec().Parameters)
	require.Less(t, strings.Index(parameters, `"Zebra":`), strings.Index(parameters, `"Apple":`))
	require.Less(t, strings.Index(parameters, `"Apple":`), strings.Index(parameters, `"Mango":`))
}

func TestOptionsAreApplied(t *testing.T) {
	made, err := tool.New("files_read", "Read", func(_ context.Context, raw json.RawMessage) (json.RawMessage, error) { return raw, nil },
		tool.Parameters(event.Object(`{"type":"object"}`)), tool.Canonical("mcp:files/read"),
		tool.Timeout(time.Hour), tool.Idempotent(), tool.Attempts(3))
	require.NoError(t, err)
	require.Equal(t, activities.Tool{
		ToolDefinition: activities.ToolDefinition{Name: "files_read", Description: "Read", Parameters: event.Object(`{"type":"object"}`)},
		Canonical:      "mcp:files/read", Idempotent: true, Timeout: time.Hour, Attempts: 3,
	}, made.Spec())

	made, err = tool.New("weather", "Weather", weather)
	require.NoError(t, err)
	require.Equal(t, "weather", made.Spec().Canonical)
	require.Equal(t, time.Minute, made.Spec().Timeout)
	require.Equal(t, 1, made.Spec().Attempts)
	require.False(t, made.Spec().Idempotent)
}

func TestInvalidToolsAreErrors(t *testing.T) {
	type cycle struct {
		Next *cycle `json:"next,omitempty"`
	}
	for _, test := range []struct {
		name, want string
		make       func() (tool.Tool, error)
	}{
		{"no name", `tool "": invalid name (1 to 64 of A-Z a-z 0-9 _ -)`,
			func() (tool.Tool, error) { return tool.New("", "Weather", weather) }},
		{"a name with a slash", `tool "a/b": invalid name (1 to 64 of A-Z a-z 0-9 _ -)`,
			func() (tool.Tool, error) { return tool.New("a/b", "Weather", weather) }},
		{"no description", `tool "weather": the description is missing (models choose tools by it)`,
			func() (tool.Tool, error) { return tool.New("weather", "", weather) }},
		{"a long description", `tool "weather": a description of 4097 bytes is out of range (at most 4096)`,
			func() (tool.Tool, error) { return tool.New("weather", strings.Repeat("a", 4097), weather) }},
		{"no canonical name", `tool "weather": the canonical name is missing`,
			func() (tool.Tool, error) { return tool.New("weather", "Weather", weather, tool.Canonical("")) }},
		{"a timeout of zero", `tool "weather": timeout 0s is out of range (1ms to 24h0m0s)`,
			func() (tool.Tool, error) { return tool.New("weather", "Weather", weather, tool.Timeout(0)) }},
		{"no attempts", `tool "weather": 0 attempts are out of range (1 to 10)`,
			func() (tool.Tool, error) { return tool.New("weather", "Weather", weather, tool.Attempts(0)) }},
		{"attempts that are not idempotent", `tool "weather": 2 attempts require the option Idempotent`,
			func() (tool.Tool, error) { return tool.New("weather", "Weather", weather, tool.Attempts(2)) }},
		{"a small result", `tool "weather": a maximum result of 10 bytes is out of range (1024 to 262144)`,
			func() (tool.Tool, error) { return tool.New("weather", "Weather", weather, tool.MaxResult(10)) }},
		{"a string as input", `tool "echo": input type string: want a struct, or a map with strings as keys`,
			func() (tool.Tool, error) {
				return tool.New("echo", "Echo", func(_ context.Context, in string) (string, error) { return in, nil })
			}},
		{"a channel", `tool "echo": input type struct { C chan int }: `,
			func() (tool.Tool, error) {
				return tool.New("echo", "Echo", func(context.Context, struct{ C chan int }) (string, error) { return "", nil })
			}},
		{"a cycle", `tool "echo": input type tool_test.cycle: `,
			func() (tool.Tool, error) {
				return tool.New("echo", "Echo", func(context.Context, cycle) (string, error) { return "", nil })
			}},
		{"parameters that are no object", `tool "weather": parameters: want a JSON object`,
			func() (tool.Tool, error) {
				return tool.New("weather", "Weather", weather, tool.Parameters(event.Object(`[]`)))
			}},
		{"parameters that are no schema", `tool "weather": parameters: invalid JSON Schema: `,
			func() (tool.Tool, error) {
				return tool.New("weather", "Weather", weather, tool.Parameters(event.Object(`{"type":"thing"}`)))
			}},
		{"large parameters", `tool "weather": parameters of 32791 bytes are out of range (at most 32768)`,
			func() (tool.Tool, error) {
				return tool.New("weather", "Weather", weather, tool.Parameters(event.Object(`{"$comment":"`+strings.Repeat("a", 32776)+`"}`)))
			}},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := test.make()
			require.ErrorContains(t, err, test.want)
		})
	}
	require.Panics(t, func() { tool.Must(tool.New("", "Weather", weather)) })
}

// Approval rules compare names with regard to case, so a tool must not receive another spelling.
func TestAToolReceivesNoFieldByAnotherSpelling(t *testing.T) {
	type options struct {
		Force bool `json:"force"`
	}
	type in struct {
		Path    string  `json:"path"`
		Options options `json:"options"`
	}
	open := tool.Must(tool.New("remove", "Remove", func(_ context.Context, in in) (in, error) { return in, nil },
		tool.Parameters(event.Object(`{"type":"object"}`))))
	closed := tool.Must(tool.New("remove", "Remove", func(_ context.Context, in in) (in, error) { return in, nil },
		tool.Parameters(event.Object(`{"type":"object","properties":{"path":{},"options":{"$ref":"#/$defs/options"}},"$defs":{"options":{"properties":{"force":{}}}}}`))))
	for _, test := range []struct {
		tool      tool.Tool
		arguments string
		want      activities.ToolCallResult
	}{
		{open, `{"path":"a","options":{"force":true}}`, activities.ToolCallResult{Value: json.RawMessage(`{"path":"a","options":{"force":true}}`)}},
		{open, `{"Path":"a","pat\u0068":"b"}`, activities.ToolCallResult{IsError: true, Error: json.RawMessage(`"invalid arguments: /Path: unknown field (want path)"`)}},
		{open, `{"options":{"Force":true}}`, activities.ToolCallResult{IsError: true, Error: json.RawMessage(`"invalid arguments: /options/Force: unknown field (want force)"`)}},
		{closed, `{"PATH":"a"}`, activities.ToolCallResult{IsError: true, Error: json.RawMessage(`"invalid arguments: /PATH: unknown field (want path)"`)}},
		{closed, `{"options":{"force":true,"\u017force":1,"Force":true}}`, activities.ToolCallResult{IsError: true, Error: json.RawMessage(`"invalid arguments: /options/Force: unknown field (want force)"`)}},
	} {
		set, err := tool.NewSet(tool.Options{}, test.tool)
		require.NoError(t, err)
		got := set.Call(t.Context(), activities.ToolCallRequest{Name: "remove", Arguments: json.RawMessage(test.arguments)})
		require.Equal(t, test.want, got, test.arguments)
	}
}
