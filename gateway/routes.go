package gateway

import (
	_ "embed"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
)

// openAPI describes what is served. It is written by hand, and the tests hold
// every answer against it.
//
//go:embed openapi.json
var openAPI []byte

// handler answers a request, or returns why not.
type handler func(w http.ResponseWriter, r *http.Request) error

// routes are what is served beside the page, by the patterns of [http.ServeMux].
func (g *Gateway) routes() map[string]handler {
	return map[string]handler{
		"GET /contexts":                               g.list,
		"POST /contexts/{name}/events":                g.send,
		"GET /contexts/{name}/events":                 g.events,
		"GET /contexts/{name}/events/{id}/attachment": g.attachment,
		"GET /contexts/{name}/state":                  g.state,
		"GET /contexts/{name}/transcript":             g.transcript,
		"POST /contexts/{name}/interrupt":             g.interrupt,
		"DELETE /contexts/{name}":                     g.end,
		"GET /limits":                                 g.limits,
		"GET /healthz":                                g.healthy,
		"GET /readyz":                                 g.ready,
		"GET /openapi.json":                           describe,
	}
}

func describe(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(openAPI) // an error means that nobody is there any more
	return nil
}

// mux finds the handler of a request. What is at no path of the routes, the page may
// have. It leads nobody on to a path that was meant: clients of an API would follow,
// or not, and learn nothing.
func (g *Gateway) mux() http.Handler {
	mux := http.NewServeMux()
	for pattern, serve := range g.routes() {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			_, err := url.ParseQuery(r.URL.RawQuery) // which r.URL.Query does, and leaves out what is wrong
			if err != nil {
				err = badRequest("the query cannot be read: %v", err)
			} else {
				err = serve(w, r)
			}
			if err != nil {
				g.fail(w, r, err)
			}
		})
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at := r.URL.EscapedPath()
		refuse, pattern := mux.Handler(r)
		if pattern != "" && path.Clean(at) == at {
			mux.ServeHTTP(w, r)
			return
		}
		if err := g.unrouted(refuse, w, r); err != nil {
			g.fail(w, r, err)
		}
	})
}

// unrouted answers a request that the mux refuses. The mux knows which methods there
// are.
func (g *Gateway) unrouted(refuse http.Handler, w http.ResponseWriter, r *http.Request) error {
	refusal := refusal{header: http.Header{}}
	refuse.ServeHTTP(&refusal, r)
	if allowed := refusal.header.Get("Allow"); allowed != "" {
		w.Header().Set("Allow", allowed)
		return problem("method", http.StatusMethodNotAllowed, "That cannot be done here", "%s is not among %s", r.Method, allowed)
	}
	if g.options.Page != nil && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		page := &pageAnswer{ResponseWriter: w}
		if g.options.Page.ServeHTTP(page, r); !page.missing {
			return nil
		}
	}
	return problem("not-found", http.StatusNotFound, "There is nothing", "openapi.json says what there is")
}

// pageAnswer lets through what the page answers, unless it has no such file.
type pageAnswer struct {
	http.ResponseWriter
	missing bool
}

func (a *pageAnswer) WriteHeader(status int) {
	if a.missing = status == http.StatusNotFound; !a.missing {
		a.ResponseWriter.WriteHeader(status)
	}
}

func (a *pageAnswer) Write(b []byte) (int, error) {
	if a.missing {
		return len(b), nil
	}
	return a.ResponseWriter.Write(b)
}

// refusal keeps the header of an answer.
type refusal struct{ header http.Header }

func (r *refusal) Header() http.Header         { return r.header }
func (r *refusal) Write(b []byte) (int, error) { return len(b), nil }
func (r *refusal) WriteHeader(int)             {}

// wantsStream reports whether a request accepts server-sent events by name. A weight
// of zero refuses them (RFC 9110, section 12.4.2).
func wantsStream(r *http.Request) bool {
	for accepted := range strings.SplitSeq(strings.Join(r.Header.Values("Accept"), ","), ",") {
		if kind, parameters, _ := mime.ParseMediaType(accepted); kind == "text/event-stream" {
			weight, err := strconv.ParseFloat(parameters["q"], 64)
			return r.Method == http.MethodGet && (err != nil || weight > 0)
		}
	}
	return false
}

// context opens the context that a request is about.
func (g *Gateway) context(r *http.Request) (Context, error) { return g.open(r.PathValue("name")) }
