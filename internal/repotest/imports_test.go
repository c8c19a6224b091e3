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

// bans lists what packages may not import, and why. A pattern is a path or a
// path with a * at the end; those of this module begin with a dot.
var bans = []struct {
	pkg    string
	banned []string
	except []string
	reason string
}{
	{"./event", []string{"*"}, []string{"std"},
		"the vocabulary outlives every library"},
	{"./reducer", []string{"*"}, []string{"std", "./event"},
		"the folds are pure and know nothing of an engine"},
	{"./reducer", []string{"context", "os*", "io*", "net*", "math/rand*", "crypto/rand", "runtime*", "syscall", "log*"}, nil,
		"a fold has no clock, no I/O and no randomness; times and ids are inputs"},
	{"./reducer/transcript", []string{"*"}, []string{"std", "./event", "github.com/aymanbagabas/go-udiff"},
		"a transcript is shown whatever engine and page there are; diffs are left to who knows how"},
	{"./reducer/transcript", []string{"context", "os*", "io*", "net*", "math/rand*", "crypto/rand", "runtime*", "syscall", "log*"}, nil,
		"a fold has no clock, no I/O and no randomness; times and ids are inputs"},
	{"./formats/chat", []string{"*"}, []string{"std", "./event", "./reducer"},
		"a log is written and read whatever engine it comes from"},
	{"./formats/chat", []string{"context", "os*", "net/http*", "math/rand*", "crypto/rand", "runtime*", "syscall", "log*"}, nil,
		"files, names and times come from who exports or imports"},
	{"./formats/agent", []string{"*"}, []string{"std", "./event", "github.com/charmbracelet/x/ansi"},
		"a log of an agent is read whatever becomes of its events"},
	{"./formats/agent", []string{"context", "os*", "net*", "math/rand*", "crypto/rand", "runtime*", "syscall", "log*"}, nil,
		"the same log gives the same events, wherever and whenever it is read"},
	{"./internal/terminal", []string{"*"}, []string{"std"},
		"every program that prints uses it"},
	{"./wire", []string{"./*"}, []string{"./event", "./reducer"},
		"what is agreed on with the outside depends on no implementation"},
	{"./workflows", []string{"./llm*", "./client", "./eventlog", "./eventlog/archive", "./eventlog/*", "github.com/sashabaranov/*", "github.com/nats-io/*", "net*", "os*", "math/rand*"}, nil,
		"the workflow knows activities by typed reference only, and does nothing itself"},
	{"./activities", []string{"./workflows", "./client", "github.com/sashabaranov/*", "github.com/nats-io/*"}, nil,
		"activities are called by the workflow, and reach models and NATS through llm and stream"},
	{"./llm", []string{"go.temporal.io/*", "github.com/nats-io/*", "./workflows", "./activities", "./stream", "./client"}, nil,
		"the adapter serves anyone who has messages"},
	{"./eventlog", []string{"./workflows", "./activities", "./llm*", "./stream", "./client"}, nil,
		"a log can be read whatever the code that wrote it has become"},
	{"./eventlog/blobs", []string{"./*"}, []string{"./event"},
		"bytes have no meaning here"},
	{"./eventlog/blobs", []string{"gocloud.dev/blob/azureblob", "gocloud.dev/blob/gcsblob", "gocloud.dev/blob/s3blob"}, nil,
		"the SDKs of three clouds are for programs that are built with them"},
	{"./eventlog/archive", []string{"./*", "go.temporal.io/*"}, []string{"./event", "./eventlog/blobs"},
		"a log is kept whatever ran it"},
	{"./stream", []string{"go.temporal.io/*", "./wire", "./workflows", "./activities", "./llm*", "./client", "./eventlog"}, nil,
		"deltas know nothing of the log"},
	{"./client", []string{"./workflows", "./activities", "./llm*", "./worker*"}, nil,
		"a client needs neither a worker nor a model"},
	{"./gateway", []string{"./*", "go.temporal.io/*", "google.golang.org/*", "github.com/nats-io/*"}, []string{"./event", "./reducer/transcript", "./client", "./wire"},
		"HTTP is another way to what client does, and shows what transcript makes of it"},
	{"./gateway/page", []string{"*"}, []string{"std"},
		"the page is files; what it shows it asks for over HTTP"},
	{"./starter*", []string{"./workflows", "./activities", "./llm*", "./eventlog", "./worker*", "go.temporal.io/sdk/client", "go.temporal.io/api/*"}, nil,
		"the command line speaks to contexts through client and knows no signal"},
}

// dependencies lists what packages may not depend on, directly or not.
var dependencies = []struct {
	pkg    string
	banned []string
	reason string
}{
	{"./event", []string{"go.temporal.io/*", "github.com/*"}, "event types need the standard library only"},
	{"./reducer", []string{"go.temporal.io/*", "github.com/nats-io/*", "gocloud.dev/*"}, "the folds run anywhere"},
	{"./client", []string{"github.com/nats-io/nats-server/*", "github.com/sashabaranov/*", "cloud.google.com/*", "github.com/aws/*", "github.com/Azure/*"},
		"a client needs no NATS server, no model and no cloud"},
	{"./gateway", []string{"github.com/nats-io/nats-server/*", "github.com/sashabaranov/*", "cloud.google.com/*", "github.com/aws/*", "github.com/Azure/*"},
		"the gateway needs no more than a client"},
	{"./workflows", []string{"github.com/nats-io/nats-server/*", "cloud.google.com/*", "github.com/aws/*", "github.com/Azure/*"},
		"a workflow needs no NATS server and no cloud"},
	{"./starter", []string{"github.com/nats-io/nats-server/*", "github.com/sashabaranov/*", "cloud.google.com/*", "github.com/aws/*", "github.com/Azure/*"},
		"without the build tag clouds the starter needs no more than a client"},
	{"./worker", []string{"cloud.google.com/*", "github.com/aws/*", "github.com/Azure/*"},
		"cloud drivers are linked with the build tag clouds only"},
}

func TestImportsDragInNothingLarge(t *testing.T) {
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

type listed struct {
	ImportPath string
	Imports    []string
}

func TestImportsPointOneWay(t *testing.T) {
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", "./...").Output()
	require.NoError(t, err)
	var packages []listed
	for decoder := json.NewDecoder(strings.NewReader(string(out))); decoder.More(); {
		var p listed
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
			require.True(t, found, "there is no such package any more: mend the table")
		})
	}
}

func TestTheFoldsHaveNoClock(t *testing.T) {
	files, err := filepath.Glob("reducer/*.go")
	require.NoError(t, err)
	ofTranscripts, err := filepath.Glob("reducer/transcript/*.go")
	require.NoError(t, err)
	require.NotEmpty(t, ofTranscripts)
	files = append(files, ofTranscripts...)
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
