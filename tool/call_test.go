package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/tool"
)

// setOf returns a set without a store, and with a logger that discards.
func setOf(t *testing.T, tools ...tool.Tool) *tool.Set {
	t.Helper()
	set, err := tool.NewSet(tool.Options{Logger: slog.New(slog.DiscardHandler)}, tools...)
	require.NoError(t, err)
	return set
}

func request(name, arguments string) activities.ToolCallRequest {
	return activities.ToolCallRequest{
		ContextName: "demo", RequestID: "demo:r0001", ToolCallID: "call_1", Name: name, Arguments: json.RawMessage(arguments),
	}
}

func value(text string) activities.ToolCallResult {
	return activities.ToolCallResult{Value: json.RawMessage(text)}
}

func failed(text string) activities.ToolCallResult {
	quoted, _ := json.Marshal(text)
	return activities.ToolCallResult{Error: quoted, IsError: true}
}

func TestAFunctionReceivesTheArgumentsAndTheCall(t *testing.T) {
	var texts []string
	set := setOf(t, tool.Must(tool.New("weather", "Weather", func(ctx context.Context, in place) (string, error) {
		tool.Progress(ctx, "looking at the sky")
		return fmt.Sprintf("%s for %d days, %s in %s", in.City, in.Days, tool.CallID(ctx), tool.ContextName(ctx)), nil
	})))
	r := request("weather", `{"city":"Oslo","days":3}`)
	r.Progress = func(text string) { texts = append(texts, text) }
	require.Equal(t, value(`"Oslo for 3 days, call_1 in demo"`), set.Call(t.Context(), r))
	require.Equal(t, []string{"looking at the sky"}, texts)
}

func TestOutsideOfACallItsIDAndContextAreEmpty(t *testing.T) {
	require.Empty(t, tool.CallID(t.Context()))
	require.Empty(t, tool.ContextName(t.Context()))
	tool.Progress(t.Context(), "nobody sees this")
	ctx := tool.NewContext(t.Context(), "demo", "call_9", nil)
	tool.Progress(ctx, "nobody sees this")
	require.Equal(t, "call_9", tool.CallID(ctx))
	require.Equal(t, "demo", tool.ContextName(ctx))
}

func TestResultsAreTextOrJSON(t *testing.T) {
	type report struct {
		Text string `json:"text"`
		At   int    `json:"at"`
	}
	type named string
	for _, test := range []struct {
		value any
		want  string
	}{
		{"plain <b>text</b> & \"quotes\"\n", `"plain <b>text</b> & \"quotes\"\n"`},
		{"", `""`},
		{named("named"), `"named"`},
		{"broken \xff text", `"broken ` + "\uFFFD" + ` text"`},
		{report{"<hot>", 7}, `{"text":"<hot>","at":7}`},
		{[]int{1, 2}, `[1,2]`},
		{3, `3`},
		{nil, `null`},
		{json.RawMessage(`{"raw": true}`), `{"raw":true}`},
	} {
		set := setOf(t, tool.Must(tool.New("any", "Any", func(context.Context, struct{}) (any, error) { return test.value, nil })))
		require.Equal(t, value(test.want), set.Call(t.Context(), request("any", "{}")), test.want)
	}
}

func TestFailuresAreResultsForTheModel(t *testing.T) {
	boom := errors.New("no such city")
	functions := map[string]func() (any, error){
		"fails":      func() (any, error) { return "ignored", boom },
		"leaks":      func() (any, error) { return nil, errors.New("GET https://user:hunter22@example.com: api_key=abc12345") },
		"later":      func() (any, error) { return nil, fmt.Errorf("wrapped: %w", tool.Retryable(boom)) },
		"unmarshals": func() (any, error) { return func() {}, nil },
		"half":       func() (any, error) { return json.RawMessage(`{"a":`), nil },
		"huge":       func() (any, error) { return strings.Repeat("a", 16<<20+1), nil },
		"verbose":    func() (any, error) { return nil, errors.New(strings.Repeat("e", 10_000)) },
	}
	var tools []tool.Tool
	for name, function := range functions {
		tools = append(tools, tool.Must(tool.New(name, "A tool", func(context.Context, struct{}) (any, error) { return function() })))
	}
	tools = append(tools, tool.Must(tool.New("weather", "Weather", weather)))
	set := setOf(t, tools...)
	for _, test := range []struct {
		name, arguments string
		want            activities.ToolCallResult
	}{
		{"fails", "{}", failed("no such city")},
		{"leaks", "{}", failed("GET https://[removed]@example.com: api_key=[removed]")},
		{"later", "{}", activities.ToolCallResult{Error: json.RawMessage(`"wrapped: no such city"`), IsError: true, Retryable: true}},
		{"unmarshals", "{}", failed("the result cannot be encoded as JSON: json: unsupported type: func()")},
		{"half", "{}", failed("the result cannot be encoded as JSON: invalid JSON")},
		{"huge", "{}", failed("the result has 16777217 bytes (at most 16777216)")},
		{"verbose", "{}", failed(strings.Repeat("e", 4096) + "… (10000 bytes in total)")},
		{"unknown", "{}", failed("this worker has no tool unknown")},
		{"weather", `{}`, failed("invalid arguments: root: missing property 'city'")},
		{"weather", ``, failed("invalid arguments: root: missing property 'city'")},
		{"weather", `null`, failed("invalid arguments: root: missing property 'city'")},
		{"weather", `{"city":5}`, failed("invalid arguments: /city: got number, want string")},
		{"weather", `{"city":"Oslo","country":"NO"}`, failed("invalid arguments: root: additional properties 'country' not allowed")},
		{"weather", `{"city"`, failed("invalid arguments: not JSON: unexpected EOF")},
		{"weather", `{"city":"Oslo","days":1e30}`, failed("invalid arguments: json: cannot unmarshal number 1e30 into Go struct field place.days of type int")},
	} {
		t.Run(test.name+" "+test.arguments, func(t *testing.T) {
			require.Equal(t, test.want, set.Call(t.Context(), request(test.name, test.arguments)))
		})
	}
	require.NoError(t, tool.Retryable(nil))
}

func TestCallsRunConcurrently(t *testing.T) {
	var both sync.WaitGroup
	both.Add(2)
	set := setOf(t, tool.Must(tool.New("meet", "Meet", func(_ context.Context, in place) (string, error) {
		both.Done()
		both.Wait()
		return in.City, nil
	})))
	results := make(chan string, 2)
	for _, city := range []string{"Oslo", "Rome"} {
		go func() {
			results <- string(set.Call(t.Context(), request("meet", `{"city":"`+city+`"}`)).Value)
		}()
	}
	require.ElementsMatch(t, []string{`"Oslo"`, `"Rome"`}, []string{<-results, <-results})
}
