package tool_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/tool"
)

// named returns tools with canonical names; nameOf returns their names for models.
func named(t *testing.T, canonical ...string) (tools []tool.Tool) {
	t.Helper()
	for _, c := range canonical {
		made, err := tool.New(nameOf(c), "A tool", func(context.Context, struct{}) (string, error) { return c, nil }, tool.Canonical(c))
		require.NoError(t, err)
		tools = append(tools, made)
	}
	return tools
}

func nameOf(canonical string) string {
	name := []rune(canonical)
	for i, r := range name {
		if r == ':' || r == '/' {
			name[i] = '_'
		}
	}
	return string(name)
}

// using asks for the tools that the patterns name.
func using(patterns ...string) activities.OfferRequest {
	r := activities.OfferRequest{ContextName: "demo"}
	for _, pattern := range patterns {
		r.Config.Tools = append(r.Config.Tools, event.Tool{Pattern: pattern})
	}
	return r
}

func canonicalNames(tools []activities.Tool) (names []string) {
	for _, t := range tools {
		names = append(names, t.Canonical)
	}
	return names
}

// servers is a source with a fixed list.
type servers struct {
	t       *testing.T
	tools   []tool.Tool
	err     error
	offered [][]string
}

func (s *servers) Offer(_ context.Context, r tool.OfferRequest) (matching []tool.Tool, err error) {
	require.Equal(s.t, "demo", r.ContextName)
	s.offered = append(s.offered, r.Patterns)
	for _, made := range s.tools {
		if slices.ContainsFunc(r.Patterns, func(p string) bool { return event.MatchTool(p, made.Spec().Canonical) }) {
			matching = append(matching, made)
		}
	}
	return matching, s.err
}

func (s *servers) Find(_ context.Context, contextName, name string) (tool.Tool, bool, error) {
	require.Equal(s.t, "demo", contextName)
	for _, made := range s.tools {
		if made.Spec().Name == name {
			return made, true, s.err
		}
	}
	return tool.Tool{}, false, s.err
}

func TestToolsAreOfferedInTheOrderOfTheEvent(t *testing.T) {
	files := &servers{t: t, tools: named(t, "mcp:files/write", "mcp:files/read", "mcp:web/get")}
	set, err := tool.NewSet(tool.Options{Sources: map[string]tool.Source{"mcp:": files}}, named(t, "weather", "sum_b", "clock", "sum_a")...)
	require.NoError(t, err)
	require.Equal(t, []string{"clock", "sum_a", "sum_b", "weather"}, set.Names())
	for _, test := range []struct {
		patterns, want []string
	}{
		{nil, nil},
		{[]string{"weather"}, []string{"weather", "read_result"}},
		{[]string{"weather", "clock"}, []string{"weather", "clock", "read_result"}},
		{[]string{"sum_*", "clock"}, []string{"sum_a", "sum_b", "clock", "read_result"}},
		{[]string{"clock", "*"}, []string{"clock", "mcp:files/read", "mcp:files/write", "mcp:web/get", "read_result", "sum_a", "sum_b", "weather"}},
		{[]string{"*r"}, []string{"weather", "read_result"}},
		{[]string{"*/read"}, []string{"mcp:files/read", "read_result"}},
		{[]string{"m*:*e*", "sum_a"}, []string{"mcp:files/read", "mcp:files/write", "mcp:web/get", "sum_a", "read_result"}},
		{[]string{"*/none"}, nil},
		{[]string{"mcp:files/*", "weather"}, []string{"mcp:files/read", "mcp:files/write", "weather", "read_result"}},
		{[]string{"mcp:files/write", "mcp:*"}, []string{"mcp:files/write", "mcp:files/read", "mcp:web/get", "read_result"}},
		{[]string{"mcp:mail/*"}, nil},
		{[]string{"mcp:files/raed", "clock"}, []string{"clock", "read_result"}},
		{[]string{"read_result"}, []string{"read_result"}},
	} {
		for range 3 {
			offered, err := set.Offer(t.Context(), using(test.patterns...))
			require.NoError(t, err)
			require.Equal(t, test.want, canonicalNames(offered))
		}
	}
}

func TestToolsOfClientsAreNotOffered(t *testing.T) {
	set := setOf(t, named(t, "weather")...)
	offered, err := set.Offer(t.Context(), activities.OfferRequest{Config: event.SetTools{Tools: event.ToolList{{Name: "ask_user"}}}})
	require.NoError(t, err)
	require.Empty(t, offered)
}

func TestMoreToolsThanProvidersAcceptAreAnError(t *testing.T) {
	var names []string
	for i := range 128 {
		names = append(names, fmt.Sprintf("t%03d", i))
	}
	set := setOf(t, named(t, names...)...)
	offered, err := set.Offer(t.Context(), using(names[:127]...))
	require.NoError(t, err)
	require.Len(t, offered, 128)
	_, err = set.Offer(t.Context(), using("*"))
	require.EqualError(t, err, "tools of context demo: 129 tools are out of range (at most 128; name fewer)")
}

func TestSourcesSeeOnlyTheirPatterns(t *testing.T) {
	files := &servers{t: t, tools: named(t, "mcp:files/read")}
	set, err := tool.NewSet(tool.Options{Sources: map[string]tool.Source{"mcp:": files}}, named(t, "weather")...)
	require.NoError(t, err)
	_, err = set.Offer(t.Context(), using("weather", "mcp:files/read", "mcp:files/*"))
	require.NoError(t, err)
	_, err = set.Offer(t.Context(), using("weather"))
	require.NoError(t, err)
	require.Equal(t, [][]string{{"mcp:files/read", "mcp:files/*"}}, files.offered)
	require.Equal(t, value(`"mcp:files/read"`), set.Call(t.Context(), request("mcp_files_read", "{}")))
	files.err = errors.New("the server is unavailable")
	_, err = set.Offer(t.Context(), using("mcp:files/read"))
	require.ErrorIs(t, err, files.err)
	require.Equal(t, failed("the server is unavailable"), set.Call(t.Context(), request("mcp_files_read", "{}")))
}

func TestWithheldToolsFollowTheOthers(t *testing.T) {
	files := &servers{t: t, tools: append(named(t, "mcp:files/read"), tool.Withheld("mcp:files/add", "of type array"), tool.Withheld("mcp:files/sum", "of type string"))}
	set, err := tool.NewSet(tool.Options{Sources: map[string]tool.Source{"mcp:": files}}, named(t, "weather")...)
	require.NoError(t, err)
	offered, err := set.Offer(t.Context(), using("mcp:*", "mcp:files/*", "weather"))
	require.NoError(t, err)
	require.Equal(t, []string{"mcp:files/read", "weather", "read_result", "mcp:files/add", "mcp:files/sum"}, canonicalNames(offered))
	require.Equal(t, "of type string", offered[4].Withheld)
	offered, err = set.Offer(t.Context(), using("mcp:files/sum"))
	require.NoError(t, err)
	require.Equal(t, []string{"mcp:files/sum"}, canonicalNames(offered), "read_result serves only other tools")
}

// If a pattern offered a tool but did not match it in a rule, calls of the tool would need no
// approval. In the opposite case, the rule would have no effect.
func TestTheWildcardsOfToolsAndOfRulesMeanTheSame(t *testing.T) {
	tools := append(named(t, "weather"), named(t, "mcp:files/read")...)
	set, err := tool.NewSet(tool.Options{Sources: map[string]tool.Source{"mcp:": &servers{t: t, tools: tools[1:]}}}, tools[0])
	require.NoError(t, err)
	for _, pattern := range []string{"*", "w*", "mcp:*", "m*", "*e*", "*/*", "mcp*/read", "weather"} {
		var want []string
		for _, name := range []string{"mcp:files/read", "read_result", "weather"} {
			if event.MatchTool(pattern, name) {
				want = append(want, name)
			}
		}
		if !slices.Contains(want, "read_result") {
			want = append(want, "read_result") // it reads the results of the others
		}
		offered, err := set.Offer(t.Context(), using(pattern))
		require.NoError(t, err)
		require.Equal(t, want, canonicalNames(offered), pattern)
	}
}

func TestUnknownToolsFailTheRequestWithAList(t *testing.T) {
	files := &servers{t: t, tools: append(named(t, "mcp:files/read"), named(t, "mcp:files_read")...)}
	set, err := tool.NewSet(tool.Options{
		Sources:  map[string]tool.Source{"mcp:": files},
		Disabled: map[string]string{"fetch": "start it with --tool-fetch"},
	}, named(t, "weather", "clock")...)
	require.NoError(t, err)
	for _, test := range []struct{ pattern, want string }{
		{"wether", `tools of context demo: no tool matches "wether" (this worker has clock, weather, read_result, mcp:…)`},
		{"sum_*", `tools of context demo: no tool matches "sum_*" (this worker has clock, weather, read_result, mcp:…)`},
		{"fetch", `tools of context demo: fetch is not enabled on this worker (start it with --tool-fetch)`},
		{"mcp:*", `tools of context demo: mcp:files/read and mcp:files_read have the same name mcp_files_read for models (name only one of them)`},
	} {
		t.Run(test.pattern, func(t *testing.T) {
			_, err := set.Offer(t.Context(), using("weather", test.pattern))
			var modelErr *activities.ModelError
			require.ErrorAs(t, err, &modelErr)
			require.Equal(t, test.want, modelErr.Error())
			require.Equal(t, event.FailureBadRequest, modelErr.Failure)
			require.False(t, modelErr.Retryable)
		})
	}
}

func TestNamesInASetAreUnique(t *testing.T) {
	for _, test := range []struct {
		want  string
		tools []tool.Tool
	}{
		{`tool "clock": the name is used twice`, named(t, "clock", "weather", "clock")},
		{`tool "read_result": the name is used twice`, named(t, "read_result")},
		{`tool "a_b": the name is used twice`, named(t, "a/b", "a:b")},
		{`tool "mcp:x/y": the prefix mcp: belongs to another source`, named(t, "mcp:x/y")},
		{`tool "": not created by New`, []tool.Tool{{}}},
	} {
		_, err := tool.NewSet(tool.Options{Sources: map[string]tool.Source{"mcp:": &servers{t: t}}}, test.tools...)
		require.EqualError(t, err, test.want)
	}
}
