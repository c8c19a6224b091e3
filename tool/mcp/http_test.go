package mcp_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/tool/mcp"
)

func handlerOf(s *sdk.Server) http.Handler {
	return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil)
}

// unless is a handler that lets another one handle the requests that answer does not.
func unless(h http.Handler, answer func(w http.ResponseWriter, r *http.Request, body string) (isAnswered bool)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if !answer(w, r, string(body)) {
			r.Body = io.NopCloser(bytes.NewReader(body))
			h.ServeHTTP(w, r)
		}
	})
}

// older is a handler that knows only protocol versions that begin with "initialize".
func older(h http.Handler) http.Handler {
	return unless(h, func(w http.ResponseWriter, _ *http.Request, body string) bool {
		isNewer := strings.Contains(body, `"server/discover"`)
		if isNewer {
			http.Error(w, "unknown method", http.StatusBadRequest)
		}
		return isNewer
	})
}

func serveHTTP(t *testing.T, h http.Handler) (url string) {
	server := httptest.NewServer(h)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL
}

// overHTTP returns a worker with server "a" at a URL.
func overHTTP(t *testing.T, url string, headers map[string]string) *worker {
	getenv := func(name string) string { return map[string]string{"TOKEN": "hunter2-hunter2"}[name] }
	return newWorker(t, getenv, mcp.Server{Name: "a", URL: url, Headers: headers})
}

func withEachProtocol(t *testing.T, test func(t *testing.T, protocol func(http.Handler) http.Handler)) {
	for name, protocol := range map[string]func(http.Handler) http.Handler{
		"newest protocol": func(h http.Handler) http.Handler { return h },
		"older protocol":  older,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, protocol)
		})
	}
}

func TestHeadersAreSentWithEachRequest(t *testing.T) {
	t.Parallel()
	withEachProtocol(t, func(t *testing.T, protocol func(http.Handler) http.Handler) {
		s := newServer()
		addTool(s, &sdk.Tool{Name: "token"}, func(r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return textResult(r.Extra.Header.Get("Authorization"))
		})
		next := protocol(handlerOf(s))
		url := serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer hunter2-hunter2" || r.Header.Get("X-Team") != "support" {
				t.Errorf("%s without headers", r.Method)
			}
			next.ServeHTTP(w, r)
		}))
		w := overHTTP(t, url, map[string]string{"Authorization": "Bearer env:TOKEN", "X-Team": "support"})
		require.Equal(t, `"Bearer [removed]"`, w.value(t, "mcp__a__token", `{}`), "results contain no secret")
		w.Close()
		require.NotContains(t, w.log.String(), "hunter2")
	})
}

func TestResultsContainNoSecretOfDigits(t *testing.T) {
	t.Parallel()
	s := newServer()
	addTool(s, &sdk.Tool{Name: "echo"}, func(r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		result := &sdk.CallToolResult{StructuredContent: json.RawMessage(`{"pin":12345678901234567890,"short":31415926,"n":1.5}`)}
		return result, nil
	})
	getenv := func(name string) string {
		return map[string]string{"PIN": "12345678901234567890", "SHORT": "31415926"}[name]
	}
	w := newWorker(t, getenv, mcp.Server{Name: "a", URL: serveHTTP(t, handlerOf(s)), Headers: map[string]string{"X-Pin": "env:PIN", "X-Short": "env:SHORT"}})
	require.Equal(t, `{"n":1.5,"pin":"[removed]","short":"[removed]"}`, w.value(t, "mcp__a__echo", `{}`))
}

func TestAChangedListOfAnHTTPServerIsRead(t *testing.T) {
	t.Parallel()
	withEachProtocol(t, func(t *testing.T, protocol func(http.Handler) http.Handler) {
		s := newServer()
		addTool(s, &sdk.Tool{Name: "first"}, returns("1"))
		w := overHTTP(t, serveHTTP(t, protocol(handlerOf(s))), nil)
		require.Equal(t, `"1"`, w.value(t, "mcp__a__first", `{}`))
		addTool(s, &sdk.Tool{Name: "second"}, returns("2"))
		require.NoError(t, w.AwaitList(deadline(t), "a", func(names []string) bool { return len(names) == 2 }))
		require.Equal(t, `"2"`, w.value(t, "mcp__a__second", `{}`))
	})
}

func TestNoRedirectToAnotherOriginIsFollowed(t *testing.T) {
	t.Parallel()
	other := serveHTTP(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s %s", r.Method, r.Header) }))
	for _, status := range []int{301, 302, 303, 307, 308} {
		url := serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other, status) }))
		w := overHTTP(t, url, map[string]string{"Authorization": "Bearer env:TOKEN"})
		require.Equal(t, `"MCP server a is unavailable: initialize: redirected to another scheme, host or port (set the url of the server itself) (the call was not made)"`,
			w.failure(t, "mcp__a__t", `{}`))
	}
}

func TestARedirectWithinTheOriginIsFollowed(t *testing.T) {
	t.Parallel()
	s := newServer()
	addTool(s, &sdk.Tool{Name: "t"}, returns("done"))
	mux := http.NewServeMux()
	mux.Handle("/mcp/", handlerOf(s))
	mux.Handle("/mcp", http.RedirectHandler("/mcp/", http.StatusPermanentRedirect))
	w := overHTTP(t, serveHTTP(t, mux)+"/mcp", nil)
	require.Equal(t, `"done"`, w.value(t, "mcp__a__t", `{}`))
}

func TestAnHTTPServerThatIsDownIsAnErrorWithoutItsURL(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	url := server.URL + "/mcp?key=hunter2-hunter2"
	server.Close()
	w := overHTTP(t, url, nil)
	failure := w.failure(t, "mcp__a__t", `{}`)
	require.Contains(t, failure, "connection refused")
	require.NotContains(t, failure, "hunter2")
	w.log.await(deadline(t), t, "connection refused")
	w.Close()
	require.NotContains(t, w.log.String(), "hunter2")
}

func TestAnHTTPServerThatRejectsTheKeyIsAnError(t *testing.T) {
	t.Parallel()
	url := serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "no access with "+r.Header.Get("Authorization"), http.StatusUnauthorized)
	}))
	w := overHTTP(t, url, map[string]string{"Authorization": "Bearer env:TOKEN"})
	failure := w.failure(t, "mcp__a__t", `{}`)
	require.Contains(t, failure, "Unauthorized")
	require.NotContains(t, failure, "hunter2")
}

func TestACallIsRepeatedIfTheServerHasForgottenTheSession(t *testing.T) {
	t.Parallel()
	newHandler := func() http.Handler {
		s := newServer()
		addTool(s, &sdk.Tool{Name: "t"}, returns("done"))
		return older(handlerOf(s))
	}
	var handler atomic.Value
	handler.Store(newHandler())
	url := serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.Load().(http.Handler).ServeHTTP(w, r) }))
	w := overHTTP(t, url, nil)
	require.Equal(t, `"done"`, w.value(t, "mcp__a__t", `{}`))
	handler.Store(newHandler()) // the server restarts
	require.Equal(t, `"done"`, w.value(t, "mcp__a__t", `{}`))
}

func TestAnHTTPServerThatDropsACallIsConnectedAgain(t *testing.T) {
	t.Parallel()
	s := newServer()
	addTool(s, &sdk.Tool{Name: "t"}, returns("done"))
	var dropped atomic.Bool
	url := serveHTTP(t, unless(handlerOf(s), func(_ http.ResponseWriter, _ *http.Request, body string) bool {
		if strings.Contains(body, `"tools/call"`) && dropped.CompareAndSwap(false, true) {
			panic(http.ErrAbortHandler)
		}
		return false
	}))
	w := overHTTP(t, url, nil)
	require.Contains(t, w.failure(t, "mcp__a__t", `{}`), "(the outcome of the call is unknown)")
	require.Equal(t, `"done"`, w.value(t, "mcp__a__t", `{}`))
}

// clientGoroutines returns the stacks of the goroutines that connect to servers.
func clientGoroutines() (stacks []string) {
	all := make([]byte, 4<<20)
	all = all[:runtime.Stack(all, true)]
	for stack := range strings.SplitSeq(string(all), "\n\n") {
		for _, frame := range []string{"mcp.(*streamableClientConn)", "mcp.(*ClientSession)", "mcp.(*Client)", "tool/mcp.(*server)", "tool/mcp.(*link)", "tool/mcp.(*httpWire)"} {
			if strings.Contains(stack, frame) {
				stacks = append(stacks, stack)
				break
			}
		}
	}
	return stacks
}

// The test does not run in parallel, because it counts goroutines.
func TestAServerThatHangsLeavesNoGoroutine(t *testing.T) {
	newest := func(h http.Handler) http.Handler { return h }
	const none = "none"
	for name, test := range map[string]struct {
		hangs    string // texts or methods of the requests without a complete response
		begins   string // texts of those among them whose response begins
		protocol func(http.Handler) http.Handler
	}{
		"at every request":                         {`{`, none, older},
		"in every response":                        {`{`, `{`, older},
		"at the list":                              {`"tools/list"`, none, newest},
		"in the list":                              {`"tools/list"`, `{`, newest},
		"at the list and the end of the session":   {`s/list" DELETE`, none, older},
		"at the list and the events of the server": {`s/list" GET`, none, older},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer()
			addTool(s, &sdk.Tool{Name: "t"}, returns("done"))
			url := serveHTTP(t, unless(test.protocol(handlerOf(s)), func(w http.ResponseWriter, r *http.Request, body string) bool {
				has := func(texts string) bool {
					return slices.ContainsFunc(strings.Fields(texts), func(text string) bool { return r.Method == text || strings.Contains(body, text) })
				}
				if !has(test.hangs) {
					return false
				}
				if has(test.begins) {
					stream(w, "")
				}
				<-r.Context().Done()
				return true
			}))
			w := overHTTP(t, url, nil)
			w.GiveUp("a")
			require.NoError(t, w.AwaitFailures(deadline(t), "a", 3))
			w.Close()
			var left []string
			require.Eventually(t, func() bool {
				left = clientGoroutines()
				return len(left) == 0
			}, time.Minute, 10*time.Millisecond)
		})
	}
}

func TestAResponseOfAnHTTPServerIsBounded(t *testing.T) {
	t.Parallel()
	s := newServer()
	addTool(s, &sdk.Tool{Name: "t"}, returns("done"))
	url := serveHTTP(t, unless(older(handlerOf(s)), func(w http.ResponseWriter, _ *http.Request, body string) bool {
		isCall := strings.Contains(body, `"tools/call"`)
		if isCall {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.Copy(w, io.LimitReader(spaces{}, 64<<20))
		}
		return isCall
	}))
	w := overHTTP(t, url, nil)
	require.Contains(t, w.failure(t, "mcp__a__t", `{}`), "the response is longer than 16777216 bytes")
}

type spaces struct{}

func (spaces) Read(p []byte) (int, error) { return copy(p, strings.Repeat(" ", len(p))), nil }
