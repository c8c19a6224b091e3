package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/secretref"
)

const (
	maxServers     = 64
	maxServerName  = 32
	maxArgs        = 256
	maxConfigBytes = 1 << 20
	minTimeout     = time.Second
	maxTimeout     = time.Hour
)

// Server configures an MCP server.
type Server struct {
	// Name is part of the names of tools: 1 to 32 of A-Z a-z 0-9 _ -, without _ at either end and
	// without __.
	Name string
	// Command is a program that speaks MCP over its standard input and output, looked up on PATH.
	// Either Command or URL is set.
	Command string
	Args    []string
	// Env is added to PATH and HOME. A value env:NAME or file:/absolute/path refers to a secret,
	// read when the server starts.
	Env map[string]string
	Dir string // working directory; empty: that of this process
	URL string // endpoint with the streamable HTTP transport
	// Headers of all requests to the URL. The last word of a value may refer to a secret, as in
	// "Bearer env:NAME".
	Headers map[string]string
	Timeout time.Duration // of a call; 0: [activities.DefaultToolTimeout]
}

var serverFields = []string{"type", "command", "args", "env", "cwd", "url", "headers", "timeoutMs", "disabled"}

// ReadServers reads the field mcpServers of a JSON file, as other MCP clients do; see
// examples/config/mcp.json. It sorts servers by name and omits disabled ones. Errors omit the text of values,
// which may be secrets.
func ReadServers(name string) ([]Server, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	servers, err := parseServers(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return servers, nil
}

func parseServers(data []byte) ([]Server, error) {
	if len(data) > maxConfigBytes {
		return nil, fmt.Errorf("%d bytes (at most %d)", len(data), maxConfigBytes)
	}
	var file map[string]json.RawMessage
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, syntaxError(data, err)
	}
	for _, key := range slices.Sorted(maps.Keys(file)) {
		if key != "mcpServers" {
			return nil, fmt.Errorf("unknown field %q (want mcpServers)", key)
		}
	}
	var tables map[string]json.RawMessage
	if json.Unmarshal(file["mcpServers"], &tables) != nil || len(tables) == 0 {
		return nil, errors.New("mcpServers: want an object with a field for each server")
	}
	if len(tables) > maxServers {
		return nil, fmt.Errorf("mcpServers: %d servers (at most %d)", len(tables), maxServers)
	}
	var servers []Server
	for _, name := range slices.Sorted(maps.Keys(tables)) {
		s, disabled, err := parseServer(name, tables[name])
		if err != nil {
			return nil, fmt.Errorf("server %q: %w", name, err)
		}
		if !disabled {
			servers = append(servers, s)
		}
	}
	return servers, nil
}

// syntaxError returns an error that names the line. It omits err, which may quote the file.
func syntaxError(data []byte, err error) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		at := data[:min(max(int(syntax.Offset), 0), len(data))]
		return fmt.Errorf("line %d: not JSON (want an object with the field mcpServers)", bytes.Count(at, []byte("\n"))+1)
	}
	return errors.New("want an object with the field mcpServers")
}

func parseServer(name string, raw json.RawMessage) (s Server, disabled bool, err error) {
	if !isServerName(name) {
		return s, false, fmt.Errorf("invalid name (1 to %d of A-Z a-z 0-9 _ -, without _ at either end and without __)", maxServerName)
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil || fields == nil {
		return s, false, errors.New("want an object")
	}
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains(serverFields, field) {
			return s, false, fmt.Errorf("unknown field %q (want one of %s)", field, strings.Join(serverFields, ", "))
		}
	}
	s.Name = name
	var kind string
	var timeoutMs *int64
	for _, field := range []struct {
		name, want string
		to         any
	}{
		{"type", "a string", &kind},
		{"command", "a string", &s.Command},
		{"args", "an array of strings", &s.Args},
		{"env", "an object of strings", &s.Env},
		{"cwd", "a string", &s.Dir},
		{"url", "a string", &s.URL},
		{"headers", "an object of strings", &s.Headers},
		{"timeoutMs", "an integer", &timeoutMs},
		{"disabled", "true or false", &disabled},
	} {
		if value, ok := fields[field.name]; ok && json.Unmarshal(value, field.to) != nil {
			return s, false, fmt.Errorf("%s: want %s", field.name, field.want)
		}
	}
	if timeoutMs != nil {
		if *timeoutMs < minTimeout.Milliseconds() || *timeoutMs > maxTimeout.Milliseconds() {
			return s, false, fmt.Errorf("timeoutMs: %d is out of range (%d to %d)", *timeoutMs, minTimeout.Milliseconds(), maxTimeout.Milliseconds())
		}
		s.Timeout = time.Duration(*timeoutMs) * time.Millisecond
	}
	if err := s.validateKind(kind); err != nil {
		return s, false, err
	}
	return s, disabled, s.validate()
}

// validateKind checks the optional field type, which other clients require.
func (s Server) validateKind(kind string) error {
	switch kind {
	case "":
		return nil
	case "stdio":
		if s.Command == "" {
			return errors.New("command: missing for type stdio")
		}
	case "http", "streamable-http", "streamableHttp":
		if s.URL == "" {
			return fmt.Errorf("url: missing for type %s", kind)
		}
	default:
		return errors.New("type: unsupported (want stdio or http)")
	}
	return nil
}

func (s Server) validate() error {
	switch {
	case !isServerName(s.Name):
		return fmt.Errorf("invalid name (1 to %d of A-Z a-z 0-9 _ -, without _ at either end and without __)", maxServerName)
	case s.Command == "" && s.URL == "":
		return errors.New("command: missing (want a command, or a url)")
	case s.Command != "" && s.URL != "":
		return errors.New("url: set together with command (want only one of them)")
	case s.Command == "" && (len(s.Args) > 0 || len(s.Env) > 0 || s.Dir != ""):
		return errors.New("args, env and cwd: only for a server with a command (use headers with a url)")
	case s.URL == "" && len(s.Headers) > 0:
		return errors.New("headers: only for a server with a url (use env with a command)")
	case len(s.Args) > maxArgs:
		return fmt.Errorf("args: %d (at most %d)", len(s.Args), maxArgs)
	case s.Dir != "" && !filepath.IsAbs(s.Dir):
		return errors.New("cwd: want an absolute path")
	case slices.ContainsFunc(append([]string{s.Command, s.Dir}, s.Args...), func(arg string) bool { return strings.Contains(arg, "\x00") }):
		return errors.New("command, args or cwd: has a NUL character")
	}
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		if err := validateEnv(name, s.Env[name]); err != nil {
			return fmt.Errorf("env: %s: %w", event.Redact(name, 100), err)
		}
	}
	if s.URL == "" {
		return nil
	}
	if err := validateURL(s.URL); err != nil {
		return fmt.Errorf("url: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		if err := validateHeader(name, s.Headers[name]); err != nil {
			return fmt.Errorf("headers: %s: %w", event.Redact(name, 100), err)
		}
	}
	return nil
}

func isServerName(name string) bool {
	return serverName.MatchString(name) && len(name) <= maxServerName &&
		!strings.Contains(name, "__") && strings.Trim(name, "_") == name
}

var (
	serverName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
	envName    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)
	headerName = regexp.MustCompile(`^[A-Za-z0-9-]{1,128}$`)
	// secretName matches variables and headers that contain secrets.
	secretName = regexp.MustCompile(`(?i)(?:^|[_-])(?:token|secret|passw(?:or)?d|passphrase|authorization|cookie|(?:api|access|private|secret|auth|subscription)[_-]?key|apikey|credentials?)$`)
)

const wantRef = "want a reference to the secret (env:NAME or file:/absolute/path, never the secret itself)"

func validateEnv(name, value string) error {
	switch {
	case !envName.MatchString(name):
		return errors.New("invalid name (1 to 128 of A-Z a-z 0-9 _, first a letter or _)")
	case strings.Contains(value, "\x00"):
		return errors.New("has a NUL character")
	case secretref.IsRef(value):
		return nil
	case looksLikeRef(value), secretName.MatchString(name) && value != "", event.Redact(name+"="+value, 0) != name+"="+value:
		return errors.New(wantRef)
	}
	return nil
}

// protocolHeaders are set by the transport.
var protocolHeaders = []string{"accept", "content-type", "content-length", "connection", "host", "transfer-encoding", "last-event-id"}

func validateHeader(name, value string) error {
	lower := strings.ToLower(name)
	switch {
	case !headerName.MatchString(name):
		return errors.New("invalid name (1 to 128 of A-Z a-z 0-9 -)")
	case slices.Contains(protocolHeaders, lower) || strings.HasPrefix(lower, "mcp-"):
		return errors.New("set by the protocol (remove it)")
	case strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }):
		return errors.New("has a control character or a character beyond ASCII")
	}
	_, last := cutLastWord(value)
	switch {
	case secretref.IsRef(last):
		return nil
	case looksLikeRef(last), secretName.MatchString(name), event.Redact(name+": "+value, 0) != name+": "+value:
		return errors.New(wantRef + `, like "Bearer env:NAME"`)
	}
	return nil
}

func cutLastWord(value string) (before, last string) {
	i := strings.LastIndexByte(value, ' ') + 1
	return value[:i], value[i:]
}

func looksLikeRef(value string) bool {
	return strings.HasPrefix(value, "env:") || strings.HasPrefix(value, "file:") || strings.HasPrefix(value, "${")
}

// validateURL repeats no part of the URL, which may contain a secret.
func validateURL(raw string) error {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return errors.New("want an http or https URL like https://mcp.example.com/mcp")
	case u.User != nil:
		return errors.New("contains a user or password (refer to them in headers)")
	case u.Fragment != "" || strings.ContainsFunc(raw, func(r rune) bool { return r <= ' ' || r > '~' }):
		return errors.New("has a fragment, a space or a character beyond ASCII")
	}
	return nil
}
