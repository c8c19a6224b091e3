package gateway

import (
	"cmp"
	"context"
	"crypto/rand"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

func (g *Gateway) guard(next http.Handler) http.Handler {
	crossOrigin := http.NewCrossOriginProtection()
	crossOrigin.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.fail(w, r, problem(problemOrigin, http.StatusForbidden, "Cross-origin request rejected",
			"Sec-Fetch-Site or Origin names a site other than Host"))
	}))
	next = crossOrigin.Handler(next)
	limiter := newRateLimiter(g.options)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		id := r.Header.Get("X-Request-Id")
		if !requestIDs.MatchString(id) {
			id = rand.Text()
		}
		r = r.WithContext(context.WithValue(r.Context(), requestIDKey{}, id))
		client := clientOf(r, g.options.Proxies)
		control := http.NewResponseController(w)
		out := &response{ResponseWriter: w, control: control, status: http.StatusOK, client: client}
		defer func() {
			out.audited()
			g.logRequest(r, client, out, time.Since(began))
		}()
		// An error means that the connection has no deadlines, as in tests. [response.Write] and
		// [upload] extend the deadlines. The read deadline also applies when the server drains an
		// unread body.
		_ = control.SetWriteDeadline(began.Add(answerTimeout + writeTimeout))
		if r.Body != http.NoBody {
			_ = control.SetReadDeadline(began.Add(bodyTimeout))
		}
		header := w.Header()
		header.Set("X-Request-Id", id)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		if r.TLS != nil && bareHost(r.Host) != "localhost" { // where it would hold for the other ports, too
			header.Set("Strict-Transport-Security", "max-age=31536000")
		}
		switch {
		case !g.isAllowedHost(r.Host):
			g.fail(out, r, problem(problemHost, http.StatusMisdirectedRequest, "Host not allowed",
				"Host must be localhost, an IP address or a name given with --host"))
		case !isProbe(r) && !limiter.allow(client):
			g.fail(out, r, problem(problemRate, http.StatusTooManyRequests, "Too many requests", "retry after the delay in Retry-After"))
		case wantsStream(r):
			release, err := g.openStream(client)
			if err != nil {
				g.fail(out, r, err)
				return
			}
			defer release()
			next.ServeHTTP(out, r)
		default:
			next.ServeHTTP(out, r)
		}
	})
}

// openStream counts a stream of a client until release is called.
func (g *Gateway) openStream(client netip.Addr) (release func(), err error) {
	free, err := g.streams.acquire(client)
	if err != nil {
		return nil, err
	}
	g.metrics.Streams.Add(1)
	return func() {
		g.metrics.Streams.Add(-1)
		free()
	}, nil
}

var requestIDs = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

type requestIDKey struct{}

func requestID(r *http.Request) string {
	id, _ := r.Context().Value(requestIDKey{}).(string)
	return id
}

// Health checks are exempt from the rate limit.
func isProbe(r *http.Request) bool { return r.URL.Path == "/healthz" || r.URL.Path == "/readyz" }

func (g *Gateway) isAllowedHost(host string) bool {
	host = bareHost(host)
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return true // DNS rebinding needs a name
	}
	return host == "localhost" || slices.ContainsFunc(g.options.Hosts, func(allowed string) bool { return bareHost(allowed) == host })
}

func bareHost(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.TrimSuffix(strings.ToLower(host), ".")
}

// response records the outcome of a request. It extends the write deadline while the client reads.
type response struct {
	http.ResponseWriter
	control  *http.ResponseController
	status   int
	bytes    int64
	deadline time.Time
	problem  string // type of the [Problem] in the response; empty: none
	trace    string // trace id; empty: the request is not traced
	client   netip.Addr
	tenant   string // "": none, or the request was not admitted
	context  string // "": that of the path, if any
	replyTo  []byte // see [Problem.ReplyTo]
	isBegun  bool   // the status is final
	audit    func() // adds the entry of the audit log; nil: none, or it was added
}

func (a *response) WriteHeader(status int) {
	a.status = status
	a.audited()
	a.ResponseWriter.WriteHeader(status)
}

func (a *response) contextOf(r *http.Request) string { return cmp.Or(a.context, r.PathValue("name")) }

// A client has writeTimeout, or at least two thirds of it, to read chunkBytes. It must send chunkBytes within
// bodyTimeout.
const chunkBytes = 64 << 10

func (a *response) Write(b []byte) (written int, err error) {
	a.audited()
	for part := range slices.Chunk(b, chunkBytes) {
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

// extend rarely moves the deadline: for each chunk, that would add up to 10 % to the cost of
// writing. HTTP/2 resets a stream at its deadline even if nothing is being written, so a keep-alive must
// move a deadline that the next one would miss.
func (a *response) extend() {
	now := time.Now()
	if a.deadline.Sub(now) > writeTimeout*2/3 {
		return
	}
	a.deadline = now.Add(writeTimeout)
	_ = a.control.SetWriteDeadline(a.deadline)
}

func (a *response) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// A stream is logged when its viewer leaves. Queries and bodies are not logged.
func (g *Gateway) logRequest(r *http.Request, client netip.Addr, a *response, elapsed time.Duration) {
	g.metrics.HTTPRequests.Add(1, cmp.Or(r.Pattern, "page"), strconv.Itoa(a.status))
	level := slog.LevelInfo
	if isProbe(r) {
		level = slog.LevelDebug
	}
	fields := []any{
		"request_id", requestID(r), "client", client, "method", r.Method, "path", r.URL.Path, "status", a.status, "bytes", a.bytes,
		"duration_ms", elapsed.Milliseconds(),
	}
	for _, field := range [][2]string{{"tenant", a.tenant}, {"context", a.contextOf(r)}, {"trace", a.trace}, {"problem", a.problem}} {
		if field[1] != "" {
			fields = append(fields, field[0], field[1])
		}
	}
	g.options.Log.Log(r.Context(), level, "request", fields...)
}
