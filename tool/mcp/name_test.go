package mcp_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-9ed7edd4/chronicle/tool/mcp"
)

func TestModelsKnowToolsByNamesThatFit(t *testing.T) {
	for _, test := range []struct{ server, tool, want string }{
		{"files", "read_file", "mcp__files__read_file"},
		{"files", "_read", "mcp__files___read"},
		{"files", "admin.read", "mcp__files__admin_read_2d99e206"},
		{"files", strings.Repeat("x", 100), "mcp__files__" + strings.Repeat("x", 43) + "_f2d2eb3d"},
	} {
		require.Equal(t, test.want, mcp.SentName(test.server, test.tool))
	}
}

func TestNamesOfDifferentToolsDiffer(t *testing.T) {
	pattern := regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	server := rapid.StringMatching(`[a-z-]{1,3}(_[a-z-]{1,2})?|[a-z]{32}`)
	tool := rapid.OneOf(rapid.StringMatching(`[a_./-]{1,6}`), rapid.StringMatching(`[a.]{40,80}`), rapid.StringN(1, 20, 128))
	rapid.Check(t, func(t *rapid.T) {
		names := map[string]string{}
		for range 20 {
			s, u := server.Draw(t, "server"), tool.Draw(t, "tool")
			sent := mcp.SentName(s, u)
			if !pattern.MatchString(sent) {
				t.Fatalf("%q does not fit", sent)
			}
			if got := mcp.ServerOf(sent); got != s {
				t.Fatalf("the server of %q is %q, not %q", sent, got, s)
			}
			if other, exists := names[sent]; exists && other != s+"/"+u {
				t.Fatalf("%q and %q have the same name %q", other, s+"/"+u, sent)
			}
			names[sent] = s + "/" + u
		}
	})
}

func TestNamesOfOtherToolsHaveNoServer(t *testing.T) {
	for _, name := range []string{"", "fetch", "mcp__", "mcp__files", "mcp:files/read"} {
		require.Empty(t, mcp.ServerOf(name))
	}
}
