package main_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/doctor"
	"github.com/seed-9ed7edd4/chronicle/tool/mcp"
	main "github.com/seed-9ed7edd4/chronicle/worker"
)

// asMCPServer makes the test binary an MCP server with a tool that returns its environment.
const asMCPServer = "CHRONICLE_TEST_AS_MCP_SERVER"

func serveMCP() {
	s := sdk.NewServer(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	s.AddTool(&sdk.Tool{Name: "environment", InputSchema: map[string]any{"type": "object"}},
		func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			var names []string
			for _, variable := range os.Environ() {
				name, _, _ := strings.Cut(variable, "=")
				names = append(names, name)
			}
			slices.Sort(names)
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: strings.Join(names, " ") + " " + os.Getenv("TOKEN")}}}, nil
		})
	_ = s.Run(context.Background(), &sdk.StdioTransport{})
}

func TestTheDoctorNamesWhatAnMCPServerDoesNotOffer(t *testing.T) {
	require.Equal(t, doctor.Result{
		Severity: doctor.Warning, Fix: "correct the tools in the server",
		Measured: "2 tools; mcp:a/sum is not offered: of type array; worked around: mcp_id_type 4, mcp_stdout_noise 2",
	}, main.CheckMCP(mcp.Status{
		Tools: 2, Withheld: []event.WithheldTool{{Name: "mcp:a/sum", Reason: "of type array"}}, Quirks: map[string]int{"mcp_stdout_noise": 2, "mcp_id_type": 4},
	}))
	require.Equal(t, doctor.OK, main.CheckMCP(mcp.Status{Tools: 1, Quirks: map[string]int{"mcp_id_type": 1}}).Severity)
	failed := main.CheckMCP(mcp.Status{Error: errors.New("the server exited")})
	require.Equal(t, doctor.Error, failed.Severity)
	require.Equal(t, "the server exited", failed.Measured)
}

func TestContextsUseTheToolsOfMCPServers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	secret, file := filepath.Join(dir, "token"), filepath.Join(dir, "mcp.json")
	require.NoError(t, os.WriteFile(secret, []byte("hunter2-hunter2"), 0o600))
	command, err := os.Executable()
	require.NoError(t, err)
	config, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"test": map[string]any{
		"command": command, "env": map[string]string{asMCPServer: "1", "TOKEN": "file:" + secret},
	}}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, config, 0o600))
	worker := dev(t, t.TempDir(), "--mcp", file)
	facts := worker.ready()
	demo, err := dial(t, facts).Open("demo")
	require.NoError(t, err)
	var call event.ToolCall
	var result event.ToolResult
	for e, err := range demo.Ask(t.Context(),
		event.New(event.SetTools{Tools: event.ToolList{{Pattern: "mcp:test/*"}}}),
		event.New(event.UserMessage{Content: "/call mcp__test__environment {}"})) {
		require.NoError(t, err)
		switch body := e.Body.(type) {
		case event.ToolCall:
			call = body
		case event.ToolResult:
			result = body
		}
	}
	require.Equal(t, "mcp__test__environment", call.ToolName)
	require.Equal(t, fmt.Sprintf(`"%s HOME PATH TOKEN [removed]"`, asMCPServer), string(result.Value), string(result.Error))
	_, findings := diagnose(t, facts)
	require.Equal(t, doctor.OK, findings["mcp.test"].Severity)
	require.Equal(t, "1 tool", findings["mcp.test"].Measured)
	worker.signal(syscall.SIGTERM)
	require.Zero(t, worker.exit(), worker.stderr.String())
	require.NotContains(t, worker.stderr.String(), "hunter2")
}
