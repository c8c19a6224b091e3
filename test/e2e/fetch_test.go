package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os/exec"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/internal/egress"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
)

// internet is the address of a server. Connections to all addresses that the tool fetch accepts go to it.
type internet string

func (i internet) client() *http.Client {
	return egress.NewClient(egress.Options{Resolver: names{}, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", string(i))
	}})
}

// names resolves a name with a public address and one with a private address.
type names struct{}

func (names) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	switch host {
	case "public.example":
		return []netip.Addr{netip.MustParseAddr("93.184.215.14")}, nil
	case "private.example":
		return []netip.Addr{netip.MustParseAddr("10.1.2.3")}, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

// pages is a server of pages and redirects that records the requested URLs.
type pages struct {
	*httptest.Server

	mu   sync.Mutex
	seen []string
}

func newPages(t *testing.T) *pages {
	p := &pages{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.seen = append(p.seen, r.Host+r.URL.Path)
		p.mu.Unlock()
		if target := r.URL.Query().Get("to"); target != "" {
			http.Redirect(rw, r, target, http.StatusFound)
			return
		}
		rw.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(rw, "<h1>Prices</h1><p>An <b>apple</b> costs 3.</p>")
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *pages) requested() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen
}

func fetches(urls ...string) llmtest.Step {
	var calls []llmtest.Call
	for i, url := range urls {
		calls = append(calls, llmtest.Call{ID: fmt.Sprint("fetch_", i+1), Name: "fetch", Arguments: fmt.Sprintf(`{"url":%q}`, url)})
	}
	return llmtest.Calls(calls...).Offered("fetch", "read_result")
}

func TestAContextFetchesPublicPagesOnly(t *testing.T) {
	t.Parallel()
	p := newPages(t)
	w := newWorld(t,
		fetches("http://public.example/prices"),
		fetches("http://public.example/moved?to=/prices"),
		fetches("http://private.example/", "http://public.example/1?to=http://private.example/", "http://public.example/2?to=http://169.254.169.254/"),
		llmtest.Answer("Three."),
	)
	w.processWith(workerSettings{Internet: internet(p.Listener.Addr().String())})
	c := w.open("fetch")
	w.setTools(c, "fetch")
	require.Equal(t, "Three.", deltaText(w.say(c, "What does an apple cost?")))
	const page = "# Prices\n\nAn **apple** costs 3."
	requests := w.model.Requests()
	require.Equal(t, []string{page}, requests[1].Results())
	require.Equal(t, []string{"[redirected to http://public.example/prices]\n\n" + page}, requests[2].Results())
	private := "host private.example is blocked: 10.1.2.3 is not a public address"
	require.Equal(t, []string{private, private, "host 169.254.169.254 is blocked: 169.254.169.254 is not a public address"}, requests[3].Results())
	require.ElementsMatch(t, []string{
		"public.example/prices", "public.example/moved", "public.example/prices", "public.example/1", "public.example/2",
	}, p.requested())
	w.replay(c, "")
}

// The worker binds the namespace to its blob store, so it has a server of its own.
func TestTheFetchToolOfTheWorkerDoesNotReachThisMachine(t *testing.T) {
	devServerOnly(t)
	t.Parallel()
	file, err := builtWorker()
	require.NoError(t, err)
	p := newPages(t)
	const loopback = "127.0.0.1 is not a public address"
	w := newWorldOn(t, environment{temporal: startOwnServer(t).Address(), timeout: buildTimeout},
		fetches(p.URL+"/prices", "http://127.0.0.1/", "http://localhost/", "http://[::ffff:127.0.0.1]/"), llmtest.Answer("I cannot."))
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
	require.Empty(t, p.requested())
	w.replay(c, "")
}
