package mcp_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/tool/mcp"
)

func TestTheFileFormatOfOtherClientsIsRead(t *testing.T) {
	servers, err := mcp.ParseServers([]byte(`{"mcpServers": {
		"files": {"type": "stdio", "command": "npx", "args": ["-y", "server-filesystem", "/srv"], "env": {"TOKEN": "env:FILES_TOKEN", "LEVEL": "debug"}, "cwd": "/srv", "timeoutMs": 5000},
		"old": {"command": "old", "disabled": true},
		"docs": {"type": "http", "url": "https://docs.example.com/mcp", "headers": {"Authorization": "Bearer file:/run/secrets/docs", "X-Team": "support"}}
	}}`))
	require.NoError(t, err)
	require.Equal(t, []mcp.Server{
		{Name: "docs", URL: "https://docs.example.com/mcp", Headers: map[string]string{"Authorization": "Bearer file:/run/secrets/docs", "X-Team": "support"}},
		{Name: "files", Command: "npx", Args: []string{"-y", "server-filesystem", "/srv"}, Env: map[string]string{"TOKEN": "env:FILES_TOKEN", "LEVEL": "debug"}, Dir: "/srv", Timeout: 5 * time.Second},
	}, servers)
}

func TestTheExampleFileIsValid(t *testing.T) {
	servers, err := mcp.ReadServers("../../examples/config/mcp.json")
	require.NoError(t, err)
	require.NotEmpty(t, servers)
}

func TestAnInvalidFileIsAnErrorThatNamesTheField(t *testing.T) {
	for _, test := range []struct{ server, want string }{
		{`"a b": {}`, `server "a b": invalid name (1 to 32 of A-Z a-z 0-9 _ -, without _ at either end and without __)`},
		{`"a__b": {}`, `server "a__b": invalid name`},
		{`"_a": {}`, `server "_a": invalid name`},
		{`"a": []`, `server "a": want an object`},
		{`"a": null`, `server "a": want an object`},
		{`"a": {}`, `server "a": command: missing (want a command, or a url)`},
		{`"a": {"command": "x", "url": "http://x"}`, `server "a": url: set together with command (want only one of them)`},
		{`"a": {"comand": "x"}`, `server "a": unknown field "comand" (want one of type, command, args, env, cwd, url, headers, timeoutMs, disabled)`},
		{`"a": {"command": 1}`, `server "a": command: want a string`},
		{`"a": {"command": "x", "args": "y"}`, `server "a": args: want an array of strings`},
		{`"a": {"command": "x", "env": {"A": 1}}`, `server "a": env: want an object of strings`},
		{`"a": {"command": "x", "cwd": "y"}`, `server "a": cwd: want an absolute path`},
		{`"a": {"command": "x", "headers": {"A": "b"}}`, `server "a": headers: only for a server with a url (use env with a command)`},
		{`"a": {"url": "http://x", "env": {"A": "b"}}`, `server "a": args, env and cwd: only for a server with a command (use headers with a url)`},
		{`"a": {"command": "x", "timeoutMs": 1}`, `server "a": timeoutMs: 1 is out of range (1000 to 3600000)`},
		{`"a": {"type": "sse", "url": "http://x"}`, `server "a": type: unsupported (want stdio or http)`},
		{`"a": {"type": "http", "command": "x"}`, `server "a": url: missing for type http`},
		{`"a": {"type": "stdio", "url": "http://x"}`, `server "a": command: missing for type stdio`},
		{`"a": {"url": "ftp://x"}`, `server "a": url: want an http or https URL like https://mcp.example.com/mcp`},
		{`"a": {"url": "http://user:hunter2@x"}`, `server "a": url: contains a user or password (refer to them in headers)`},
		{`"a": {"url": "http://x/#f"}`, `server "a": url: has a fragment, a space or a character beyond ASCII`},
		{`"a": {"command": "x", "env": {"A-B": "c"}}`, `server "a": env: A-B: invalid name (1 to 128 of A-Z a-z 0-9 _, first a letter or _)`},
		{`"a": {"command": "x", "env": {"MY_TOKEN": "hunter2"}}`, `server "a": env: MY_TOKEN: want a reference to the secret (env:NAME or file:/absolute/path, never the secret itself)`},
		{`"a": {"command": "x", "env": {"A": "sk-hunter2hunter2"}}`, `server "a": env: A: want a reference to the secret`},
		{`"a": {"command": "x", "env": {"A": "env:"}}`, `server "a": env: A: want a reference to the secret`},
		{`"a": {"command": "x", "env": {"A": "${TOKEN}"}}`, `server "a": env: A: want a reference to the secret`},
		{`"a": {"url": "http://x", "headers": {"Authorization": "Bearer hunter2"}}`, `server "a": headers: Authorization: want a reference to the secret (env:NAME or file:/absolute/path, never the secret itself), like "Bearer env:NAME"`},
		{`"a": {"url": "http://x", "headers": {"X-Api-Key": "hunter2"}}`, `server "a": headers: X-Api-Key: want a reference to the secret`},
		{`"a": {"url": "http://x", "headers": {"Mcp-Session-Id": "x"}}`, `server "a": headers: Mcp-Session-Id: set by the protocol (remove it)`},
		{`"a": {"url": "http://x", "headers": {"A B": "x"}}`, `server "a": headers: A B: invalid name (1 to 128 of A-Z a-z 0-9 -)`},
		{`"a": {"url": "http://x", "headers": {"A": "x\ny"}}`, `server "a": headers: A: has a control character or a character beyond ASCII`},
	} {
		t.Run(test.server, func(t *testing.T) {
			_, err := mcp.ParseServers([]byte(`{"mcpServers": {` + test.server + `}}`))
			require.ErrorContains(t, err, test.want)
			require.NotContains(t, err.Error(), "hunter2")
		})
	}
}

func TestAFileThatIsNoListOfServersIsAnErrorThatNamesTheFile(t *testing.T) {
	for _, test := range []struct{ file, want string }{
		{"{\n\"mcpServers\": {\n\"secret\",", "line 3: not JSON (want an object with the field mcpServers)"},
		{`[]`, "want an object with the field mcpServers"},
		{`{"servers": {}}`, `unknown field "servers" (want mcpServers)`},
		{`{}`, "mcpServers: want an object with a field for each server"},
		{`{"mcpServers": {}}`, "mcpServers: want an object with a field for each server"},
		{strings.Repeat(" ", 1<<20+1), "1048577 bytes (at most 1048576)"},
	} {
		name := filepath.Join(t.TempDir(), "mcp.json")
		require.NoError(t, os.WriteFile(name, []byte(test.file), 0o600))
		_, err := mcp.ReadServers(name)
		require.EqualError(t, err, name+": "+test.want)
	}
	_, err := mcp.ReadServers("/no/such/file")
	require.ErrorContains(t, err, "/no/such/file")
}

func TestServersInOptionsAreValidated(t *testing.T) {
	_, err := mcp.New(mcp.Options{Servers: []mcp.Server{{Name: "a"}}})
	require.EqualError(t, err, `server "a": command: missing (want a command, or a url)`)
	_, err = mcp.New(mcp.Options{Servers: []mcp.Server{{Name: "a", Command: "x"}, {Name: "a", Command: "x"}}})
	require.EqualError(t, err, `server "a": the name is used twice`)
}
