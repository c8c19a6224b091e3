package builtin_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/internal/egress"
	"github.com/seed-9ed7edd4/chronicle/tool"
	"github.com/seed-9ed7edd4/chronicle/tool/builtin"
)

// public is a resolver that knows one name.
type public struct{}

func (public) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	if host != "public.example" {
		return nil, &net.DNSError{Err: "no such host", Name: host, Server: "10.0.0.2:53", IsNotFound: true}
	}
	return []netip.Addr{netip.MustParseAddr("93.184.215.14")}, nil
}

// setOf returns a set of tools without a store.
func setOf(t *testing.T, tools ...tool.Tool) *tool.Set {
	t.Helper()
	set, err := tool.NewSet(tool.Options{Logger: slog.New(slog.DiscardHandler)}, tools...)
	require.NoError(t, err)
	return set
}

// use calls a tool of a set from the context "demo".
func use(t *testing.T, set *tool.Set, name string, arguments any) (text string, result activities.ToolCallResult) {
	t.Helper()
	encoded, err := json.Marshal(arguments)
	require.NoError(t, err)
	result = set.Call(t.Context(), activities.ToolCallRequest{ContextName: "demo", ToolCallID: "call_1", Name: name, Arguments: encoded})
	value := result.Value
	if result.IsError {
		value = result.Error
	}
	require.NoError(t, json.Unmarshal(value, &text))
	return text, result
}

// web returns a set with fetch, whose public addresses all lead to a server.
func web(t *testing.T, handler http.HandlerFunc) *tool.Set {
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return setOf(t, builtin.Fetch(builtin.FetchOptions{Client: egress.NewClient(egress.Options{
		Resolver: public{},
		Dial: func(ctx context.Context, _, address string) (net.Conn, error) {
			require.Equal(t, "93.184.215.14:80", address)
			return new(net.Dialer).DialContext(ctx, "tcp", server.Listener.Addr().String())
		},
	})}))
}

const page = `<html><head><title>Prices</title><style>p{}</style><script>track()</script></head><body>
<h1>Prices</h1><p>A <b>red</b> <a href="/apple?kind=red">apple</a> costs 3&nbsp;€.</p>
<img alt="logo" src="data:image/png;base64,AAAA"><ul><li>one<li>two</ul>
<table><tr><th>fruit<th>price<tr><td>apple<td>3</table></body></html>`

func TestFetchReturnsText(t *testing.T) {
	zipped := new(bytes.Buffer)
	w := gzip.NewWriter(zipped)
	_, _ = w.Write([]byte("unzipped"))
	require.NoError(t, w.Close())
	for _, test := range []struct {
		name, contentType, encoding, body, want string
		isRaw                                   bool
	}{
		{name: "HTML", contentType: "text/html; charset=utf-8", body: page, want: "# Prices\n\nA **red** [apple](http://public.example/apple?kind=red) costs 3\u00a0€.\n\n" +
			"![logo]()\n\n- one\n- two\n\n| fruit | price |\n|-------|-------|\n| apple | 3     |"},
		{name: "raw HTML", contentType: "text/html", body: page, want: page, isRaw: true},
		{name: "HTML that is nested too deep", contentType: "text/html", body: strings.Repeat("<div>", 600) + "deep", want: strings.Repeat("<div>", 600) + "deep"},
		{name: "plain text", contentType: "text/plain", body: "a <b> & c", want: "a <b> & c"},
		{name: "JSON", contentType: "application/json", body: `{"a": 1}`, want: `{"a": 1}`},
		{name: "a type with the suffix +json", contentType: "application/ld+json", body: `{}`, want: `{}`},
		{name: "XML", contentType: "application/rss+xml", body: "<rss/>", want: "<rss/>"},
		{name: "text without a type", body: "hello", want: "hello"},
		{name: "a type with a malformed parameter", contentType: "text/plain; charset", body: "hello", want: "hello"},
		{name: "Latin-1", contentType: "text/plain; charset=ISO-8859-1", body: "caf\xe9", want: "café"},
		{name: "Latin-1 without a type", contentType: "text/plain", body: "caf\xe9", want: "café"},
		{name: "UTF-16", contentType: "text/plain; charset=utf-16", body: "\xff\xfeh\x00i\x00", want: "hi"},
		{name: "an encoding in HTML", contentType: "text/html", body: "<meta charset=windows-1251><p>\xcf\xf0\xe8\xe2\xe5\xf2", want: "Привет"},
		{name: "UTF-8 with a byte order mark", contentType: "text/plain", body: "\ufeffhi", want: "hi"},
		{name: "gzip", contentType: "text/plain", encoding: "gzip", body: zipped.String(), want: "unzipped"},
		{name: "an empty body", contentType: "text/plain", body: "", want: ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			set := web(t, func(w http.ResponseWriter, r *http.Request) {
				require.Equal(t, http.MethodGet, r.Method)
				require.Regexp(t, `^Chronicle/\d`, r.UserAgent())
				w.Header()["Content-Type"] = nil
				if test.contentType != "" {
					w.Header().Set("Content-Type", test.contentType)
				}
				if test.encoding != "" {
					w.Header().Set("Content-Encoding", test.encoding)
				}
				_, _ = w.Write([]byte(test.body))
			})
			text, result := use(t, set, "fetch", map[string]any{"url": "http://public.example/page", "raw": test.isRaw})
			require.False(t, result.IsError, text)
			require.Equal(t, test.want, text)
		})
	}
}

func TestFetchFollowsRedirectsAndSaysSo(t *testing.T) {
	set := web(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/old" {
			http.Redirect(w, r, "/new", http.StatusMovedPermanently)
			return
		}
		_, _ = w.Write([]byte("moved"))
	})
	text, _ := use(t, set, "fetch", map[string]any{"url": "http://public.example/old"})
	require.Equal(t, "[redirected to http://public.example/new]\n\nmoved", text)
}

func TestFetchReadsTheBeginningOfALongBody(t *testing.T) {
	zipped := new(bytes.Buffer) // a bomb: 100 MB in 100 KB
	w := gzip.NewWriter(zipped)
	for range 100 {
		_, err := w.Write(bytes.Repeat([]byte("a"), 1_000_000))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	set := web(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(zipped.Bytes())
	})
	text, result := use(t, set, "fetch", map[string]any{"url": "http://public.example/"})
	require.False(t, result.IsError)
	require.True(t, strings.Contains(text, "The result has 2097216 bytes."))
	require.Contains(t, text[len(text)-100:], "[the body is longer than 2097152 bytes; the rest was not read]")
}

func TestFetchFailures(t *testing.T) {
	set := web(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/image":
			w.Header().Set("Content-Type", "image/png")
			_, _ = w.Write([]byte("png"))
		case "/binary":
			w.Header().Set("Content-Type", "text/plain")
			_, _ = w.Write([]byte("a\x00b"))
		case "/missing":
			http.Error(w, "no such page, api_key=abcdefgh", http.StatusNotFound)
		case "/busy":
			http.Error(w, "try later", http.StatusServiceUnavailable)
		case "/limited":
			http.Error(w, "slow down", http.StatusTooManyRequests)
		case "/inside":
			http.Redirect(w, r, "http://169.254.169.254/latest/meta-data", http.StatusFound)
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		case "/cut":
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("only this"))
		default:
			t.Errorf("unexpected request of %s", r.URL)
		}
	})
	for _, test := range []struct {
		url, want   string
		isRetryable bool
	}{
		{"http://public.example/image", `the content type "image/png" is not text`, false},
		{"http://public.example/binary", "the body is not text", false},
		{"http://public.example/missing", "status 404 Not Found: no such page, api_key=[removed]", false},
		{"http://public.example/busy", "status 503 Service Unavailable: try later", true},
		{"http://public.example/limited", "status 429 Too Many Requests: slow down", true},
		{"http://public.example/inside", "host 169.254.169.254 is blocked: 169.254.169.254 is not a public address", false},
		{"http://public.example/loop", "a chain of more than 5 redirects is blocked", false},
		{"http://public.example/cut", "read the body: unexpected EOF", true},
		{"http://other.example/", "host other.example: no such host", false},
		{"http://127.0.0.1/", "host 127.0.0.1 is blocked: 127.0.0.1 is not a public address", false},
		{"http://me:secret99@public.example/", "a URL with a user name is blocked (remove the part before the @)", false},
		{"http://public.example:9200/", "port 9200 is blocked (use 80 or 443)", false},
		{"file:///etc/passwd", `scheme "file" is blocked (use http or https)`, false},
		{"/etc/passwd", `scheme "" is blocked (use http or https)`, false},
		{"", `scheme "" is blocked (use http or https)`, false},
		{"http://[", "url: invalid (want an http or https URL)", false},
	} {
		t.Run(test.url, func(t *testing.T) {
			text, result := use(t, set, "fetch", map[string]any{"url": test.url})
			require.True(t, result.IsError)
			require.Equal(t, test.want, text)
			require.Equal(t, test.isRetryable, result.Retryable)
		})
	}
}

func TestFetchIsGuardedByDefault(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("reached") }))
	defer server.Close()
	set := setOf(t, builtin.Fetch(builtin.FetchOptions{}))
	text, result := use(t, set, "fetch", map[string]any{"url": server.URL})
	require.True(t, result.IsError)
	require.Contains(t, text, "is blocked")
	text, result = use(t, set, "fetch", map[string]any{"url": "http://localhost/"})
	require.True(t, result.IsError)
	require.Contains(t, text, "host localhost is blocked")
}
