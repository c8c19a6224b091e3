package gateway

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"
)

// guard lets requests in to a handler, gives them an id, and logs them.
func (g *Gateway) guard(next http.Handler) http.Handler {
	foreign := http.NewCrossOriginProtection()
	foreign.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.fail(w, r, problem("origin", http.StatusForbidden, "A page of another site may not do that",
			"Sec-Fetch-Site or Origin names another site than Host"))
	}))
	next = foreign.Handler(next)
	visitors := newVisitors(g.options)
	streams := newStreams(g.options)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		id := r.Header.Get("X-Request-Id")
		if !requestIDs.MatchString(id) {
			id = rand.Text()
		}
		r = r.WithContext(context.WithValue(r.Context(), requestIDKey{}, id))
		client := clientOf(r, g.options.Proxies)
		control := http.NewResponseController(w)
		answer := &answer{ResponseWriter: w, control: control, status: http.StatusOK}
		defer func() { g.logRequest(r, client, answer, time.Since(began)) }()
		// An error means that the connection has no deadlines, as in a test. Answers
		// extend theirs, see [answer.Write], and so do bodies, see [upload]. The deadline
		// of a body holds for the server, too, which reads what no handler has read.
		_ = control.SetWriteDeadline(began.Add(answerTimeout + writeTimeout))
		if r.Body != http.NoBody {
			_ = control.SetReadDeadline(began.Add(bodyTimeout))
		}
		header := w.Header()
		header.Set("X-Request-Id", id)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		switch {
		case !g.isOurs(r.Host):
			g.fail(answer, r, problem("host", http.StatusMisdirectedRequest, "The gateway has another name",
				"Host has to be localhost, an IP address or a name that the gateway was told with --host"))
		case !isProbe(r) && !visitors.admit(client):
			g.fail(answer, r, problem("rate", http.StatusTooManyRequests, "Too many requests", "wait a moment"))
		case wantsStream(r):
			leave, err := streams.enter(client)
			if err != nil {
				g.fail(answer, r, err)
				return
			}
			defer leave()
			next.ServeHTTP(answer, r)
		default:
			next.ServeHTTP(answer, r)
		}
	})
}

var requestIDs = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

type requestIDKey struct{}

// requestID is the id of a request that passed the guard.
func requestID(r *http.Request) string {
	id, _ := r.Context().Value(requestIDKey{}).(string)
	return id
}

// isProbe reports whether a request asks for the health of the gateway, which
// supervisors do at any time.
func isProbe(r *http.Request) bool { return r.URL.Path == "/healthz" || r.URL.Path == "/readyz" }

// isOurs reports whether a Host is one that the gateway is reached by.
func (g *Gateway) isOurs(host string) bool {
	host = bareHost(host)
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return true // no name leads there
	}
	return host == "localhost" || slices.ContainsFunc(g.options.Hosts, func(ours string) bool { return bareHost(ours) == host })
}

// bareHost is a Host without its port.
func bareHost(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.TrimSuffix(strings.ToLower(host), ".")
}

// answer knows how a request was answered, and lets a client take as long as it needs
// for a long answer while it takes some of it.
type answer struct {
	http.ResponseWriter
	control *http.ResponseController
	status  int
	bytes   int64
	// deadline is until when what was written has to be taken.
	deadline time.Time
}

func (a *answer) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}

// piece is how many bytes a client has to take within writeTimeout, and to send within
// bodyTimeout.
const piece = 64 << 10

// Write writes piece by piece. A client that takes nothing within writeTimeout is cut
// off.
func (a *answer) Write(b []byte) (written int, err error) {
	for part := range slices.Chunk(b, piece) {
		a.extend()
		n, err := a.ResponseWriter.Write(part)
		written += n
		a.bytes += int64(n)
		if err != nil {
			return written, err
		}
	}
	return written, nil
}

// extend gives the client between half and all of writeTimeout from now on. Setting a
// deadline for each piece would cost up to a tenth of writing.
func (a *answer) extend() {
	now := time.Now()
	if a.deadline.Sub(now) > writeTimeout/2 {
		return
	}
	a.deadline = now.Add(writeTimeout)
	// An error means that the connection has no deadlines, as in a test.
	_ = a.control.SetWriteDeadline(a.deadline)
}

// Unwrap is for [http.ResponseController].
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// logRequest tells of a request when it is over, which for a stream is when its
// viewer leaves. Queries and bodies are not told.
func (g *Gateway) logRequest(r *http.Request, client netip.Addr, a *answer, took time.Duration) {
	level := slog.LevelInfo
	if isProbe(r) {
		level = slog.LevelDebug
	}
	g.options.Log.Log(r.Context(), level, "request", "request_id", requestID(r), "client", client,
		"method", r.Method, "path", r.URL.Path, "status", a.status, "bytes", a.bytes, "took", took)
}
