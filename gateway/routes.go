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

// openapi.json is written by hand; tests validate every response against it.
//
//go:embed openapi.json
var openAPI []byte

// The handler's error goes to [Gateway.fail].
type handler func(w http.ResponseWriter, r *http.Request) error

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
	_, _ = w.Write(openAPI) // an error means that the client disconnected
	return nil
}

// Paths without a route go to the page. The mux never redirects.
func (g *Gateway) mux() http.Handler {
	mux := http.NewServeMux()
	for pattern, serve := range g.routes() {
		mux.HandleFunc(pattern, g.traced(pattern, func(w http.ResponseWriter, r *http.Request) {
			_, err := url.ParseQuery(r.URL.RawQuery) // r.URL.Query ignores errors
			if err != nil {
				err = badRequest("invalid query: %v", err)
			} else {
				err = serve(w, r)
			}
			if err != nil {
				g.fail(w, r, err)
			}
		}))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at := r.URL.EscapedPath()
		reject, pattern := mux.Handler(r)
		if pattern != "" && path.Clean(at) == at {
			mux.ServeHTTP(w, r)
			return
		}
		if err := g.unrouted(reject, w, r); err != nil {
			g.fail(w, r, err)
		}
	})
}

// The response of the mux tells which methods the path supports.
func (g *Gateway) unrouted(reject http.Handler, w http.ResponseWriter, r *http.Request) error {
	rejection := rejection{header: http.Header{}}
	reject.ServeHTTP(&rejection, r)
	if allowed := rejection.header.Get("Allow"); allowed != "" {
		w.Header().Set("Allow", allowed)
		return problem("method", http.StatusMethodNotAllowed, "Method not allowed", "%s is not supported here (allowed: %s)", r.Method, allowed)
	}
	if g.options.Page != nil && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		page := &pageResponse{ResponseWriter: w}
		if g.options.Page.ServeHTTP(page, r); !page.missing {
			return nil
		}
	}
	return problem("not-found", http.StatusNotFound, "Not found", "/openapi.json lists the available paths")
}

// pageResponse passes the response of the page on, unless it is 404.
type pageResponse struct {
	http.ResponseWriter
	missing bool
}

func (a *pageResponse) WriteHeader(status int) {
	if a.missing = status == http.StatusNotFound; !a.missing {
		a.ResponseWriter.WriteHeader(status)
	}
}

func (a *pageResponse) Write(b []byte) (int, error) {
	if a.missing {
		return len(b), nil
	}
	return a.ResponseWriter.Write(b)
}

type rejection struct{ header http.Header }

func (r *rejection) Header() http.Header         { return r.header }
func (r *rejection) Write(b []byte) (int, error) { return len(b), nil }
func (r *rejection) WriteHeader(int)             {}

// wantsStream reports whether the Accept header names text/event-stream, with a weight above zero
// (RFC 9110, section 12.4.2).
func wantsStream(r *http.Request) bool {
	for accepted := range strings.SplitSeq(strings.Join(r.Header.Values("Accept"), ","), ",") {
		if kind, parameters, _ := mime.ParseMediaType(accepted); kind == "text/event-stream" {
			weight, err := strconv.ParseFloat(parameters["q"], 64)
			return r.Method == http.MethodGet && (err != nil || weight > 0)
		}
	}
	return false
}

func (g *Gateway) context(r *http.Request) (Context, error) { return g.open(r.PathValue("name")) }
