// Package typescript_test compiles a client with the types that openapi-typescript generates from the description of the
// gateway, and runs it against a worker, a gateway and a scripted model.
package typescript_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
	"github.com/seed-9ed7edd4/chronicle/internal/npmtest"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/tool"
	"github.com/seed-9ed7edd4/chronicle/worker/chronicletest"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

const testTimeout = 5 * time.Minute // only detects hangs

// compile compiles the programs in a folder: that of this one, and that of the documentation.
func compile(t *testing.T, dir, url string) {
	t.Helper()
	description, err := filepath.Abs("../../../gateway/openapi.json")
	require.NoError(t, err)
	docs, err := os.ReadFile("../../../docs/clients.md")
	require.NoError(t, err)
	program := regexp.MustCompile("(?s)```ts\n(import createClient .*?)```").FindSubmatch(docs)
	require.NotNil(t, program)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "documented.ts"), []byte(strings.ReplaceAll(string(program[1]), "http://localhost:8080", url)), 0o644))
	generate := regexp.MustCompile(`npx (openapi-typescript) \S+ (.*)`).FindSubmatch(docs)
	require.NotNil(t, generate)
	run(t, dir, "openapi-typescript", append([]string{description}, strings.Fields(string(generate[2]))...)...)
	run(t, dir, "tsc")
}

// run runs a program of the packages, or node.
func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	if name != "node" {
		name = filepath.Join(dir, "node_modules", ".bin", name)
	}
	command := exec.CommandContext(ctx, name, args...)
	command.Dir = dir
	out, err := command.CombinedOutput()
	require.NoError(t, err, string(out))
	return string(out)
}

// serve returns the URL of a gateway, which starts a worker and closes all connections on request.
func serve(t *testing.T) string {
	t.Helper()
	server := chronicletest.Start(t, llmtest.Func(func(r llmtest.Request) llmtest.Step {
		switch results := r.Results(); {
		case len(results) > 0:
			return llmtest.Answer("It is ", results[0])
		case r.LastUser() == "look":
			return llmtest.Calls(llmtest.Call{ID: "call_1", Name: "look_up", Arguments: `{"word":"cat"}`})
		}
		return llmtest.Answer("You said ", r.LastUser()).Usage(10, 5)
	}))
	conn, err := contexts.Connect(t.Context(), server.Config())
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	tools, err := tool.NewSet(tool.Options{}, tool.Must(tool.New("look_up", "Look a word up", func(_ context.Context, in struct {
		Word string `json:"word"`
	}) (string, error) {
		return "a small " + in.Word, nil
	})))
	require.NoError(t, err)
	worker, err := conn.NewWorker(contexts.Options{Models: llm.New(llm.Options{Defaults: server.Defaults()}), Tools: tools})
	require.NoError(t, err)
	work := sync.OnceFunc(func() {
		if assert.NoError(t, worker.Start()) {
			t.Cleanup(worker.Stop)
		}
	})
	g := gateway.New(conn.Client(), gateway.Options{Rate: -1})
	mux := http.NewServeMux()
	mux.Handle("/", g)
	web := httptest.NewServer(mux)
	mux.HandleFunc("POST /test/work", func(http.ResponseWriter, *http.Request) { work() })
	mux.HandleFunc("POST /test/cut", func(http.ResponseWriter, *http.Request) { web.CloseClientConnections() })
	t.Cleanup(web.Close)
	t.Cleanup(g.Close)
	return web.URL
}

func TestAGeneratedClient(t *testing.T) {
	dir := npmtest.Folder(t, "../../..", "typescript", ".")
	url := serve(t)
	compile(t, dir, url)
	seen := run(t, dir, "node", "out/drive.js", url)
	require.Contains(t, seen, event.FormatID("a", 2))
	t.Run("of the documentation", func(t *testing.T) {
		require.Equal(t, "You said Hello\n", run(t, dir, "node", "out/documented.js"))
	})
}
