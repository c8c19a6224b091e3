package repotest

import (
	"encoding/json"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/seed-9ed7edd4/chronicle"

// bans lists imports that packages must not have. A pattern is an import path, or a
// prefix and *. Paths in this module begin with "./". "std" is the standard library.
var bans = []struct {
	pkg    string
	banned []string
	except []string
	reason string
}{
	{"./event", []string{"*"}, []string{"std"},
		"event types are stored for years and depend on the standard library only"},
	{"./reducer", []string{"*"}, []string{"std", "./event"},
		"the reducer is pure and independent of Temporal"},
	{"./reducer", []string{"context", "os*", "io*", "net*", "math/rand*", "crypto/rand", "runtime*", "syscall", "log*"}, nil,
		"a reducer has no clock, no I/O and no randomness; times and ids are inputs"},
	{"./reducer/transcript", []string{"*"}, []string{"std", "./event", "github.com/aymanbagabas/go-udiff"},
		"transcripts are independent of Temporal and of the page; go-udiff computes diffs"},
	{"./reducer/transcript", []string{"context", "os*", "io*", "net*", "math/rand*", "crypto/rand", "runtime*", "syscall", "log*"}, nil,
		"a reducer has no clock, no I/O and no randomness; times and ids are inputs"},
	{"./internal/formats/chat", []string{"*"}, []string{"std", "./event", "./reducer", "./internal/lines"},
		"import and export are independent of Temporal"},
	{"./internal/formats/chat", []string{"context", "os*", "net/http*", "math/rand*", "crypto/rand", "runtime*", "syscall", "log*"}, nil,
		"callers supply readers, writers, names and times"},
	{"./internal/formats/agent", []string{"*"}, []string{"std", "./event", "./internal/lines", "github.com/charmbracelet/x/ansi"},
		"agent logs are parsed independently of how their events are stored"},
	{"./internal/formats/agent", []string{"context", "os*", "net*", "math/rand*", "crypto/rand", "runtime*", "syscall", "log*"}, nil,
		"parsing is deterministic: the same log yields the same events"},
	{"./internal/lines", []string{"*"}, []string{"std"},
		"import and export depend on it"},
	{"./internal/terminal", []string{"*"}, []string{"std"},
		"every program that prints imports it"},
	{"./internal/wire", []string{"./*"}, []string{"./event", "./reducer"},
		"protocol names and types are independent of the implementation"},
	{"./workflows", []string{"./llm*", "./client", "./internal/stream", "./internal/eventlog", "./internal/eventlog/archive", "./internal/eventlog/*", "github.com/sashabaranov/*", "github.com/nats-io/*", "net*", "os*", "math/rand*", "./tool", "./tool/*"}, nil,
		"workflow code is deterministic: I/O happens in activities, which it calls by typed reference"},
	{"./activities", []string{"./workflows", "./llm*", "./tool", "./tool/*", "./internal/backend"}, nil,
		"activities reach models and tools through interfaces"},
	{"./hook", []string{"*"}, []string{"std", "./event", "./reducer"},
		"hooks are functions: activities call them, and they know neither models nor Temporal"},
	{"./hook", []string{"net*", "os*"}, nil,
		"activities and thereby workflows depend on it"},
	{"./hook/webhook", []string{"*"}, []string{"std", "./event", "./reducer", "./hook", "./internal/retryafter", "./internal/secretref", "./internal/tomlfile", "./internal/tracing", "github.com/BurntSushi/toml", "github.com/standard-webhooks/*"},
		"webhooks know neither models nor Temporal"},
	{"./hook/title", []string{"./*", "go.temporal.io/*"}, []string{"./event", "./reducer", "./hook", "./client", "./llm", "./internal/metrics"},
		"a hook of a program reaches contexts and models through their packages"},
	{"./tool", []string{"./workflows", "./client", "./worker*", "./llm*", "./internal/stream", "./internal/backend"}, nil,
		"tools are functions: the worker calls them, and they know neither models nor clients"},
	{"./tool/builtin", []string{"./workflows", "./client", "./worker*", "./llm*", "./internal/stream", "./internal/backend"}, nil,
		"tools are functions: the worker calls them, and they know neither models nor clients"},
	{"./tool/mcp", []string{"./workflows", "./client", "./worker*", "./llm*", "./internal/stream", "./internal/eventlog*", "./internal/backend"}, nil,
		"tools of servers are functions: they know neither models nor clients, and store nothing"},
	{"./tool", []string{"net*", "os*"}, nil,
		"only tool/builtin and tool/mcp reach the network and files"},
	{"./internal/tracing", []string{"*"}, []string{"std", "./event", "go.opentelemetry.io/otel/attribute", "go.opentelemetry.io/otel/codes", "go.opentelemetry.io/otel/propagation", "go.opentelemetry.io/otel/trace"},
		"every package may make spans: only internal/telemetry imports the OpenTelemetry SDK"},
	{"./internal/egress", []string{"*"}, []string{"std"},
		"the guard of requests is small enough to be reviewed"},
	{"./llm", []string{"go.temporal.io/*", "github.com/nats-io/*", "./workflows", "./activities", "./internal/stream", "./client"}, nil,
		"the model adapter works without Temporal"},
	{"./internal/ordering", []string{"*"}, []string{"std"},
		"the rules of providers share no code with the renderer that they check"},
	{"./internal/eventlog", []string{"./workflows", "./activities", "./llm*", "./internal/stream", "./client"}, nil,
		"reading a log requires neither the code that wrote it nor a model"},
	{"./internal/eventlog/blobs", []string{"./*"}, []string{"./event", "./internal/pause", "./internal/metrics", "./internal/references", "./internal/tracing"},
		"the blob store treats content as opaque bytes"},
	{"./internal/eventlog/blobs", []string{"gocloud.dev/blob/azureblob", "gocloud.dev/blob/gcsblob", "gocloud.dev/blob/s3blob"}, nil,
		"only programs register cloud drivers"},
	{"./internal/eventlog/archive", []string{"./*", "go.temporal.io/*"}, []string{"./event", "./internal/eventlog/blobs"},
		"archived logs are independent of Temporal"},
	{"./internal/stream", []string{"go.temporal.io/*", "./internal/wire", "./workflows", "./activities", "./llm*", "./client", "./internal/eventlog"}, nil,
		"streaming is independent of the log"},
	{"./client", []string{"./workflows", "./activities", "./llm*", "./worker*", "./tool", "./tool/*"}, nil,
		"a client needs neither a worker nor a model nor tools"},
	{"./internal/index", []string{"./*", "go.temporal.io/*", "github.com/blevesearch/bleve/v2", "github.com/blevesearch/bleve/v2/mapping", "github.com/blevesearch/bleve/v2/search/query"}, []string{"./event", "./reducer", "./client", "./internal/pause", "./internal/preview"},
		"an index is built from logs; the omitted packages of bleve would add 10 MB to programs"},
	{"./gateway", []string{"./*", "go.temporal.io/*", "google.golang.org/*", "github.com/nats-io/*"}, []string{"./event", "./reducer", "./reducer/transcript", "./reducer/usage", "./client", "./gateway/auth", "./internal/index", "./internal/wire", "./internal/metrics", "./internal/tracing"},
		"the gateway serves client, details, transcript and usage over HTTP and knows no signal"},
	{"./gateway/auth", []string{"*"}, []string{"std", "./event", "./internal/reload", "github.com/coreos/go-oidc/v3/oidc", "golang.org/x/oauth2"},
		"what decides who enters is small enough to be reviewed"},
	{"./gateway/thread", []string{"./*"}, []string{"./event", "./reducer", "./gateway"},
		"the fold of protocols reaches contexts through the gateway"},
	{"./gateway/openai", []string{"./*"}, []string{"./event", "./reducer", "./client", "./gateway", "./gateway/auth", "./gateway/thread"},
		"a protocol reaches contexts through the gateway"},
	{"./gateway/aisdk", []string{"./*"}, []string{"./event", "./reducer", "./client", "./gateway", "./gateway/auth", "./gateway/thread"},
		"a protocol reaches contexts through the gateway"},
	{"./gateway/agui", []string{"./*"}, []string{"./event", "./reducer", "./client", "./gateway", "./gateway/auth", "./gateway/thread"},
		"a protocol reaches contexts through the gateway"},
	{"./gateway/a2a", []string{"./*"}, []string{"./event", "./client", "./gateway", "./gateway/auth", "./gateway/thread"},
		"a protocol reaches contexts through the gateway"},
	{"./gateway/page", []string{"*"}, []string{"std"},
		"the page is static files and uses the HTTP API"},
	{"./starter*", []string{"./workflows", "./activities", "./llm*", "./internal/eventlog", "./worker*", "./tool", "./tool/*", "go.temporal.io/sdk/client", "go.temporal.io/api/*"}, nil,
		"commands reach contexts through client and know no signal"},
}

// dependencies lists transitive dependencies that packages must not have.
var dependencies = []struct {
	pkg    string
	banned []string
	reason string
}{
	{"./event", []string{"go.temporal.io/*", "github.com/*"}, "event types need the standard library only"},
	{"./reducer", []string{"go.temporal.io/*", "github.com/nats-io/*", "gocloud.dev/*"}, "the reducer is pure"},
	{"./client", []string{"github.com/nats-io/nats-server/*", "github.com/sashabaranov/*", "github.com/tiktoken-go/*", "cloud.google.com/*", "github.com/aws/*", "github.com/Azure/*", "github.com/spf13/*"},
		"a client needs no NATS server, no model library, no tokenizer, no cloud SDK and no flag library"},
	{"./gateway", []string{"github.com/nats-io/nats-server/*", "github.com/sashabaranov/*", "github.com/tiktoken-go/*", "cloud.google.com/*", "github.com/aws/*", "github.com/Azure/*", "github.com/spf13/*"},
		"the gateway needs no more than the client"},
	{"./workflows", []string{"github.com/sashabaranov/*", "github.com/tiktoken-go/*", "github.com/nats-io/nats-server/*", "cloud.google.com/*", "github.com/aws/*", "github.com/Azure/*"},
		"workflows link no model library, no NATS server and no cloud SDK"},
	{"./activities", []string{"github.com/sashabaranov/*", "github.com/tiktoken-go/*", "github.com/nats-io/nats-server/*"},
		"activities reach models through an interface, which internal/backend implements with llm"},
	{"./starter", []string{"github.com/nats-io/nats-server/*", "github.com/sashabaranov/*", "github.com/tiktoken-go/*", "cloud.google.com/*", "github.com/aws/*", "github.com/Azure/*"},
		"without the build tag clouds, starter needs no more than the client"},
	{"./client", []string{"go.opentelemetry.io/otel/sdk/trace*", "go.opentelemetry.io/otel/exporters/*"}, "only programs export metrics and traces"},
	{"./worker/contexts", []string{"go.opentelemetry.io/otel/sdk/trace*", "go.opentelemetry.io/otel/exporters/*"}, "only programs export metrics and traces"},
	{"./gateway", []string{"go.opentelemetry.io/otel/sdk/trace*", "go.opentelemetry.io/otel/exporters/*"}, "only programs export metrics and traces"},
	{"./client", []string{"github.com/google/jsonschema-go/*", "github.com/JohannesKaufmann/*"}, "a client needs no tools"},
	{"./gateway", []string{"github.com/google/jsonschema-go/*", "github.com/JohannesKaufmann/*"}, "a gateway needs no tools"},
	{"./starter", []string{"github.com/google/jsonschema-go/*", "github.com/JohannesKaufmann/*"}, "a client needs no tools"},
	{"./activities", []string{"github.com/google/jsonschema-go/*", "github.com/JohannesKaufmann/*"}, "activities reach tools through an interface"},
	{"./tool", []string{"github.com/JohannesKaufmann/*"}, "only tool/builtin converts pages"},
	{"./tool", []string{"github.com/modelcontextprotocol/*"}, "only tool/mcp speaks MCP"},
	{"./activities", []string{"github.com/modelcontextprotocol/*"}, "only tool/mcp speaks MCP"},
	{"./activities", []string{"github.com/standard-webhooks/*"}, "activities reach webhooks as functions"},
	{"./client", []string{"github.com/modelcontextprotocol/*"}, "only workers speak MCP"},
	{"./worker", []string{"cloud.google.com/*", "github.com/aws/*", "github.com/Azure/*"},
		"only the build tag clouds links cloud SDKs"},
}

func TestPackagesAvoidHeavyTransitiveDependencies(t *testing.T) {
	for _, ban := range dependencies {
		t.Run(ban.pkg, func(t *testing.T) {
			out, err := exec.Command("go", "list", "-deps", ban.pkg).Output()
			require.NoError(t, err)
			for _, dependency := range strings.Fields(string(out)) {
				if !strings.HasPrefix(dependency, module) && anyMatches(ban.banned, dependency) {
					t.Errorf("%s depends on %s: %s", ban.pkg, dependency, ban.reason)
				}
			}
		})
	}
}

type listedPackage struct {
	ImportPath string
	Imports    []string
}

func TestPackagesAvoidBannedImports(t *testing.T) {
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", "./...").Output()
	require.NoError(t, err)
	var packages []listedPackage
	for decoder := json.NewDecoder(strings.NewReader(string(out))); decoder.More(); {
		var p listedPackage
		require.NoError(t, decoder.Decode(&p))
		packages = append(packages, p)
	}
	for _, ban := range bans {
		t.Run(ban.pkg, func(t *testing.T) {
			found := false
			for _, p := range packages {
				if !matches(ban.pkg, p.ImportPath) {
					continue
				}
				found = true
				for _, imported := range p.Imports {
					if anyMatches(ban.banned, imported) && !anyMatches(ban.except, imported) {
						t.Errorf("%s imports %s: %s", p.ImportPath, imported, ban.reason)
					}
				}
			}
			require.True(t, found, "the package does not exist: update the table")
		})
	}
}

func TestReducersReadNoClock(t *testing.T) {
	files, err := filepath.Glob("reducer/*.go")
	require.NoError(t, err)
	transcripts, err := filepath.Glob("reducer/transcript/*.go")
	require.NoError(t, err)
	require.NotEmpty(t, transcripts)
	files = append(files, transcripts...)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, clock := range []string{"time.Now(", "time.Since(", "time.Until(", "time.After(", "time.NewTimer(", "time.Sleep("} {
			require.NotContains(t, string(source), clock, file)
		}
	}
}

func anyMatches(patterns []string, importPath string) bool {
	for _, pattern := range patterns {
		if matches(pattern, importPath) {
			return true
		}
	}
	return false
}

func matches(pattern, importPath string) bool {
	if pattern == "std" {
		first, _, _ := strings.Cut(importPath, "/")
		return !strings.Contains(first, ".")
	}
	if strings.HasPrefix(pattern, "./") {
		pattern = path.Join(module, pattern)
	}
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(importPath, prefix)
	}
	return importPath == pattern
}
