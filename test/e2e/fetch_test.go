package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
)

// The worker binds the namespace to its blob store, so it has a server of its own.
func TestTheFetchToolOfTheWorkerDoesNotReachThisMachine(t *testing.T) {
	devServerOnly(t)
	t.Parallel()
	file, err := builtWorker()
	require.NoError(t, err)
	page := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("%s was requested", r.URL)
	}))
	t.Cleanup(page.Close)
	const loopback = "127.0.0.1 is not a public address"
	var calls []llmtest.Call
	for i, url := range []string{page.URL + "/prices", "http://127.0.0.1/", "http://localhost/", "http://[::ffff:127.0.0.1]/"} {
		calls = append(calls, llmtest.Call{ID: fmt.Sprint("fetch_", i+1), Name: "fetch", Arguments: fmt.Sprintf(`{"url":%q}`, url)})
	}
	w := newWorldOn(t, environment{temporal: startOwnServer(t).Address()},
		llmtest.Calls(calls...).Offered("fetch", "read_result"), llmtest.Answer("I cannot."))
	w.start(exec.Command(file, w.withAddresses([]string{"--tool-fetch"})...), "OPENAI_BASE_URL="+w.model.URL, "OPENAI_MODEL=scripted")
	c := w.open("fetch-worker")
	w.setTools(c, "fetch")
	require.Equal(t, "I cannot.", deltaText(w.say(c, "What does an apple cost?")))
	results := w.model.Requests()[1].Results()
	require.Len(t, results, 4)
	require.Regexp(t, `^port \d+ is blocked \(use 80 or 443\)$`, results[0])
	require.Equal(t, "host 127.0.0.1 is blocked: "+loopback, results[1])
	require.Regexp(t, `^host localhost is blocked: \S+ is not a public address$`, results[2])
	require.Equal(t, "host ::ffff:127.0.0.1 is blocked: ::ffff:"+loopback, results[3])
	w.replay(c, "")
}
