package mcp_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// rawHTTP is a server whose responses are written as they are.
type rawHTTP struct {
	// call answers a call of a tool; nil: as JSON.
	call func(w http.ResponseWriter, r *http.Request, m request)
	// get answers the n-th GET; nil: with the status 405.
	get func(w http.ResponseWriter, r *http.Request, n int)
	// notice is the status for notifications; 0: 202.
	notice int
	// refuses reports whether a request with a session is refused with the status and the text.
	refuses func(m request) bool
	status  int
	text    string

	mu       sync.Mutex
	gets     int
	sessions int
	methods  []string
}

func (s *rawHTTP) handler(t *testing.T) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method {
		case http.MethodDelete:
			return
		case http.MethodGet:
			s.mu.Lock()
			s.gets++
			n := s.gets
			s.mu.Unlock()
			if s.get == nil {
				w.WriteHeader(http.StatusMethodNotAllowed)
				return
			}
			s.get(w, r, n)
			return
		}
		body, _ := io.ReadAll(r.Body)
		var m request
		if err := json.Unmarshal(body, &m); err != nil {
			t.Errorf("invalid request: %v", err)
		}
		s.mu.Lock()
		s.methods = append(s.methods, m.Method)
		if m.Method == "initialize" {
			s.sessions++
		}
		session := fmt.Sprint("session-", s.sessions)
		s.mu.Unlock()
		switch {
		case m.Method == "server/discover":
			http.Error(w, "no session", http.StatusBadRequest)
		case m.Method != "initialize" && r.Header.Get("Mcp-Session-Id") != session:
			t.Errorf("%s without the session", m.Method)
		case s.refuses != nil && s.refuses(m):
			w.WriteHeader(s.status)
			_, _ = io.WriteString(w, s.text)
		case m.ID == nil && s.notice != 0:
			w.WriteHeader(s.notice)
		case m.ID == nil:
			w.WriteHeader(http.StatusAccepted)
		case m.Method == "tools/call" && s.call != nil:
			s.call(w, r, m)
		default:
			w.Header().Set("Mcp-Session-Id", session)
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, correct(t, m))
		}
	})
}

func (s *rawHTTP) count(method string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.methods {
		if m == method {
			n++
		}
	}
	return n
}

// stream begins an event stream with a text.
func stream(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, text)
	_ = http.NewResponseController(w).Flush()
}

func TestResponsesOfOtherShapesAreRead(t *testing.T) {
	t.Parallel()
	indented := strings.NewReplacer(`{"jsonrpc"`, "{\ndata: \"jsonrpc\"", `,"result"`, ",\ndata:\"result\"")
	for name, write := range map[string]func(w http.ResponseWriter, m request){
		"an event":          func(w http.ResponseWriter, m request) { stream(w, "event: message\ndata: "+m.say("said")+"\n\n") },
		"a byte order mark": func(w http.ResponseWriter, m request) { stream(w, "\ufeffdata: "+m.say("said")+"\n\n") },
		"comments and other fields": func(w http.ResponseWriter, m request) {
			stream(w, ": open\n\nretry: 10\ncolor: blue\nping\ndata:"+m.say("said")+"\n\n")
		},
		"several lines of data":    func(w http.ResponseWriter, m request) { stream(w, "data: "+indented.Replace(m.say("said"))+"\n\n") },
		"an event without its end": func(w http.ResponseWriter, m request) { stream(w, "data: "+m.say("said")) },
		"events of other kinds": func(w http.ResponseWriter, m request) {
			stream(w, "event: ping\ndata: {}\n\nevent: note\ndata: wait\n\ndata:\n\nevent: answer\ndata: "+m.say("said")+"\n\n")
		},
		"JSON without a type": func(w http.ResponseWriter, m request) {
			w.Header()["Content-Type"] = nil
			_, _ = io.WriteString(w, m.say("said"))
		},
		"an event as JSON": func(w http.ResponseWriter, m request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, "event: message\ndata: "+m.say("said")+"\n\n")
		},
		"another id": func(w http.ResponseWriter, m request) {
			m.ID = json.RawMessage(`"x"`)
			stream(w, "data: "+m.say("said")+"\n\n")
		},
		"no id": func(w http.ResponseWriter, m request) {
			m.ID = json.RawMessage("null")
			stream(w, "data: "+m.say("said")+"\n\n")
		},
		"another session id": func(w http.ResponseWriter, m request) {
			w.Header().Set("Mcp-Session-Id", "another")
			stream(w, "data: "+m.say("said")+"\n\n")
		},
		"the status 201": func(w http.ResponseWriter, m request) {
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, m.say("said"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &rawHTTP{call: func(w http.ResponseWriter, _ *http.Request, m request) { write(w, m) }}
			w := overHTTP(t, serveHTTP(t, s.handler(t)), nil)
			for range 2 {
				require.Equal(t, `"said"`, w.value(t, "mcp__a__say", `{}`))
			}
			require.Equal(t, 1, s.count("initialize"))
		})
	}
}

func TestCallsDoNotDependOnTheStreamOfTheServer(t *testing.T) {
	t.Parallel()
	status := func(code int) func(http.ResponseWriter, *http.Request, int) {
		return func(w http.ResponseWriter, _ *http.Request, _ int) { w.WriteHeader(code) }
	}
	const many = 8 // more than the SDK tolerates
	for name, test := range map[string]struct {
		get  func(w http.ResponseWriter, r *http.Request, n int)
		gets int // to await during a call
	}{
		"404":           {status(404), 1},
		"405":           {status(405), 1},
		"406":           {status(406), 1},
		"401":           {status(401), 1},
		"500":           {status(500), many},
		"HTML":          {func(w http.ResponseWriter, _ *http.Request, _ int) { _, _ = io.WriteString(w, "<html>") }, 1},
		"it is dropped": {func(http.ResponseWriter, *http.Request, int) { panic(http.ErrAbortHandler) }, many},
		"it ends":       {func(w http.ResponseWriter, _ *http.Request, _ int) { stream(w, "event: ping\ndata:\n\n") }, many},
		"it is no JSON": {func(w http.ResponseWriter, _ *http.Request, _ int) { stream(w, "data: tide\n\nnonsense\n\n") }, many},
		"405 later": {func(w http.ResponseWriter, _ *http.Request, n int) {
			if n > 3 {
				w.WriteHeader(http.StatusMethodNotAllowed)
				return
			}
			stream(w, "id: 4\ndata:\n\n")
		}, 4},
		"it never answers": {func(_ http.ResponseWriter, r *http.Request, _ int) { <-r.Context().Done() }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			enough := make(chan struct{})
			s := &rawHTTP{
				get: func(w http.ResponseWriter, r *http.Request, n int) {
					if n == test.gets {
						close(enough)
					}
					test.get(w, r, n)
				},
				call: func(w http.ResponseWriter, r *http.Request, m request) {
					select {
					case <-enough:
						stream(w, "data: "+m.say("said")+"\n\n")
					case <-r.Context().Done():
					}
				},
			}
			w := overHTTP(t, serveHTTP(t, s.handler(t)), nil)
			require.Equal(t, `"said"`, w.value(t, "mcp__a__say", `{}`))
			require.Equal(t, `"said"`, w.value(t, "mcp__a__say", `{}`))
			require.Equal(t, 1, s.count("initialize"))
		})
	}
}

func TestAStreamOfTheServerThatEndsIsOpenedAgain(t *testing.T) {
	t.Parallel()
	lists := make(chan struct{}, 10)
	s := &rawHTTP{}
	s.get = func(w http.ResponseWriter, r *http.Request, n int) {
		switch n {
		case 1:
			stream(w, "")
		case 2:
			stream(w, "id: 42\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n")
		default:
			<-r.Context().Done()
		}
	}
	next := s.handler(t)
	url := serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r)
		if s.count("tools/list") == 2 {
			lists <- struct{}{}
		}
	}))
	w := overHTTP(t, url, nil)
	require.Equal(t, `"said"`, w.value(t, "mcp__a__say", `{}`))
	select {
	case <-lists:
	case <-deadline(t).Done():
		t.Fatal("the changed list is not read")
	}
}

func TestTheStreamOfACallIsResumed(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		begin string
		get   func(w http.ResponseWriter, r *http.Request, m request, n int)
		want  string
		gets  int
	}{
		"with the response": {"id: 1\ndata:\n\n", func(w http.ResponseWriter, r *http.Request, m request, n int) {
			if n < 3 {
				stream(w, fmt.Sprintf("id: %d\ndata:\n\n", n+1))
				return
			}
			stream(w, "data: "+m.say("after "+r.Header.Get("Last-Event-ID"))+"\n\n")
		}, `"after 3"`, 3},
		"without progress": {"id: 1\ndata:\n\n", func(w http.ResponseWriter, _ *http.Request, _ request, _ int) { stream(w, "") },
			`"MCP server a: calling \"tools/call\": request terminated without response (the outcome of the call is unknown)"`, 1},
		"but it cannot be": {"id: 1\ndata:\n\n", func(w http.ResponseWriter, _ *http.Request, _ request, _ int) { w.WriteHeader(405) },
			`"MCP server a: calling \"tools/call\": request terminated without response (the outcome of the call is unknown)"`, 1},
		"but has no id": {"data:\n\n", nil,
			`"MCP server a: calling \"tools/call\": the response ended without a result (the outcome of the call is unknown)"`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var call request
			var gets atomic.Int32
			s := &rawHTTP{
				call: func(w http.ResponseWriter, _ *http.Request, m request) { call = m; stream(w, test.begin) },
				get: func(w http.ResponseWriter, r *http.Request, _ int) {
					if r.Header.Get("Last-Event-ID") == "" { // the stream of the server
						w.WriteHeader(http.StatusMethodNotAllowed)
						return
					}
					test.get(w, r, call, int(gets.Add(1)))
				},
			}
			w := overHTTP(t, serveHTTP(t, s.handler(t)), nil)
			result, _ := w.call(deadline(t), "mcp__a__say", `{}`)
			require.Equal(t, test.want, result)
			require.EqualValues(t, test.gets, gets.Load())
			s.call = nil
			require.Equal(t, `"said"`, w.value(t, "mcp__a__say", `{}`), "the connection remains")
			require.Equal(t, 1, s.count("initialize"))
		})
	}
}

func TestAnErrorStatusAffectsOnlyItsCall(t *testing.T) {
	t.Parallel()
	const unmade, unknown = " (the call was not made)", " (the outcome of the call is unknown)"
	for _, test := range []struct {
		status int
		text   string
		want   string
	}{
		{400, "", "MCP server a is unavailable: 400 Bad Request" + unmade},
		{401, "expired", "MCP server a is unavailable: 401 Unauthorized: expired" + unmade},
		{403, "", "MCP server a is unavailable: 403 Forbidden" + unmade},
		{413, "too large", "MCP server a is unavailable: 413 Request Entity Too Large: too large" + unmade},
		{429, "", "MCP server a is unavailable: 429 Too Many Requests" + unmade},
		{499, "", "MCP server a is unavailable: 499" + unmade},
		{408, "", "MCP server a: 408 Request Timeout" + unknown},
		{500, "out of memory", "MCP server a: 500 Internal Server Error: out of memory" + unknown},
		{502, "", "MCP server a: 502 Bad Gateway" + unknown},
		{504, "", "MCP server a: 504 Gateway Timeout" + unknown},
		{400, `{"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"no depth"}}`, "MCP server a: no depth"},
		{500, `{"jsonrpc":"2.0","error":"no depth"}`, "MCP server a: no depth"},
	} {
		s := &rawHTTP{call: func(w http.ResponseWriter, _ *http.Request, _ request) {
			w.WriteHeader(test.status)
			_, _ = io.WriteString(w, test.text)
		}}
		w := overHTTP(t, serveHTTP(t, s.handler(t)), nil)
		require.Equal(t, `"`+test.want+`"`, w.failure(t, "mcp__a__say", `{}`))
		s.call = nil
		require.Equal(t, `"said"`, w.value(t, "mcp__a__say", `{}`), "the connection remains")
		require.Equal(t, 1, s.count("initialize"))
	}
}

func TestACallWaitsForARateLimit(t *testing.T) {
	t.Parallel()
	for wait, want := range map[string]struct {
		result string
		calls  int
	}{
		"1":       {`"said"`, 3},
		"3600000": {`"MCP server a is unavailable: 429 Too Many Requests (the call was not made)"`, 1},
	} {
		var calls atomic.Int32
		s := &rawHTTP{}
		limited := unless(s.handler(t), func(w http.ResponseWriter, _ *http.Request, body string) bool {
			isLimited := strings.Contains(body, "tools/call") && calls.Add(1) <= 2
			if isLimited {
				w.Header().Set("Retry-After-Ms", wait)
				w.WriteHeader(http.StatusTooManyRequests)
			}
			return isLimited
		})
		result, _ := overHTTP(t, serveHTTP(t, limited), nil).call(deadline(t), "mcp__a__say", `{}`)
		require.Equal(t, want.result, result)
		require.EqualValues(t, want.calls, calls.Load())
	}
}

func TestACallThatDoesNotReachTheServerWasNotMade(t *testing.T) {
	t.Parallel()
	s := &rawHTTP{}
	next := s.handler(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		next.ServeHTTP(w, r)
	}))
	w := overHTTP(t, server.URL, nil)
	require.Equal(t, `"said"`, w.value(t, "mcp__a__say", `{}`))
	server.CloseClientConnections()
	server.Close()
	failure := w.failure(t, "mcp__a__say", `{}`)
	require.Contains(t, failure, "connection refused")
	require.Contains(t, failure, "(the call was not made)")

	s = &rawHTTP{call: func(w http.ResponseWriter, r *http.Request, _ request) {
		http.Redirect(w, r, "http://tides.example/", http.StatusTemporaryRedirect)
	}}
	w = overHTTP(t, serveHTTP(t, s.handler(t)), nil)
	require.Equal(t, `"MCP server a is unavailable: redirected to another scheme, host or port (set the url of the server itself) (the call was not made)"`,
		w.failure(t, "mcp__a__say", `{}`))
}

func TestAnExpiredSessionIsRenewed(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		status int
		text   string
		quirks string
	}{
		{404, "", ""},
		{404, `{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Session not found"}}`, ""},
		{404, "<html>not found</html>", ""},
		{400, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}`, "mcp_session_status 1"},
		{400, "Session terminated", "mcp_session_status 1"},
	} {
		s := &rawHTTP{status: test.status, text: test.text}
		s.refuses = func(m request) bool { return m.Method == "tools/call" && s.count("initialize") == 1 }
		w := overHTTP(t, serveHTTP(t, s.handler(t)), nil)
		require.Equal(t, `"said"`, w.value(t, "mcp__a__say", `{}`), test)
		require.Equal(t, 2, s.count("initialize"))
		require.Equal(t, test.quirks, w.quirks(t))
	}
}

func TestARejectedNotificationIsIgnored(t *testing.T) {
	t.Parallel()
	for _, status := range []int{200, 204, 400, 405, 500, 501} {
		s := &rawHTTP{notice: status}
		w := overHTTP(t, serveHTTP(t, s.handler(t)), nil)
		require.Equal(t, `"said"`, w.value(t, "mcp__a__say", `{}`), status)
		require.Equal(t, 1, s.count("initialize"))
	}
}
