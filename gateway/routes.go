package gateway

import (
	_ "embed"
	"mime"
	"net/http"
	"net/url"
	"path"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/gateway/auth"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// openapi.json is generated from the routes and the Go types; tests validate every response against it.
//
//go:embed openapi.json
var openAPI []byte

// route is an operation. The name and the doc comment of serve are its id and its description.
type route struct {
	pattern    string
	name       string                                                         // of the operation; "": that of serve
	serve      func(g *Gateway, w http.ResponseWriter, r *http.Request) error // the error goes to [Gateway.fail]
	parameters []parameter
	required   string // the name of the parameter outside of the path that must be present; "": none
	body       any    // a value of the type of the JSON in the request; nil: none, or that of sendEvents
	status     int    // of the response; 0: 200
	answer     string // describes the response
	result     any    // a value of the type of the JSON in the response; nil: none
	stream     string // describes the server-sent events of the response; "" for none
	media      []string
	roles      []auth.Role // any of which admits a sender
	isShared   bool        // share links of the context in the path admit, too
}

// operation returns the operation id in openapi.json.
func (r route) operation() string {
	if r.name != "" {
		return r.name
	}
	name := runtime.FuncForPC(reflect.ValueOf(r.serve).Pointer()).Name()
	return name[strings.LastIndexByte(name, '.')+1:]
}

var (
	public  = []auth.Role{} // no credential
	readers = []auth.Role{auth.RoleRead}
	writers = []auth.Role{auth.RoleWrite}
	senders = []auth.Role{auth.RoleWrite, auth.RoleApprove} // each event requires one of them
)

// parameter is one besides the name of the context. Its schema is a component of openapi.json; "" for any text.
type parameter struct{ name, in, schema, description string }

const eventStream = "`message` events with an Event, a TextDelta, a ReasoningDelta or a ToolProgress as data"

var (
	limitParameter = parameter{"limit", "query", "Limit", "The maximum number of items on a page"}
	fromParameter  = parameter{"from", "query", "", "The start of the page, from a `next` link"}
	labelParameter = parameter{"label", "query", "", "Selects contexts with this label, `KEY=VALUE`"}
	keyParameter   = parameter{"Idempotency-Key", "header", "IdempotencyKey", "Identifies the request"}

	routes = []route{
		{
			pattern: "GET /contexts", serve: (*Gateway).listContexts, roles: readers,
			parameters: []parameter{
				{"q", "query", "", "Selects contexts whose name or title contains this text, ignoring case"},
				{"status", "query", "Status", "Selects contexts with this status"},
				labelParameter,
				{"owner", "query", "", "Selects contexts of this owner"},
				{"archived", "query", "", "`true` selects archived contexts instead of the others"},
				fromParameter, limitParameter,
			},
			answer: "A page of the list", result: contextPage{},
		},
		{
			pattern: "GET /search", serve: (*Gateway).searchMessages, roles: readers,
			required: "q",
			parameters: []parameter{
				{"q", "query", "", "Words, which a message must all contain, and phrases in double quotes; at most 400 bytes"},
				{"context", "query", "ContextName", "Selects messages of this context"},
				labelParameter, fromParameter, limitParameter,
			},
			answer: "A page of the hits", result: hitPage{},
		},
		{
			pattern: "GET /events", serve: (*Gateway).followContexts, roles: readers,
			required: "context",
			parameters: []parameter{
				{"context", "query", "ContextNames", "Follows this context; repeat it for each"},
				{"from", "query", "EventIDs", "Starts after this event of its context; absent: at the first event; repeat it for others"},
				{"Last-Event-ID", "header", "", "The id of the last server-sent event, for the same contexts in the same order; overrides `from`"},
			},
			answer: "A stream", stream: eventStream,
		},
		{
			pattern: "POST /contexts/{name}/events", serve: (*Gateway).sendEvents, roles: senders,
			parameters: []parameter{keyParameter},
			status:     http.StatusAccepted, answer: "The events were accepted. A worker records them now or when it is available", result: client.Receipt{},
		},
		{
			pattern: "GET /contexts/{name}/events", serve: (*Gateway).readEvents, roles: readers, isShared: true,
			parameters: []parameter{
				{"from", "query", "EventID", "Starts after this event; absent: at the first event"},
				limitParameter,
				{"Last-Event-ID", "header", "EventID", "For streams: starts after this event and overrides `from`"},
			},
			answer: "A page, or a stream", result: eventPage{},
			stream: eventStream,
		},
		{
			pattern: "GET /contexts/{name}/events/{id}/attachment", serve: (*Gateway).readAttachment, roles: readers, isShared: true,
			parameters: []parameter{{"id", "path", "EventID", "The id of a FileAttachmentEvent"}},
			answer:     "The bytes of the file", media: attachmentTypes(),
		},
		{
			pattern: "GET /contexts/{name}/turns/{id}", serve: (*Gateway).readTurn, roles: readers,
			parameters: []parameter{
				{"id", "path", "", "The id of the event, or its `clientEventId`, for which the whole log is read"},
				{"wait", "query", "", "The maximum duration of the wait for the end of the turn, such as `30s`, at most `1m`; absent: none"},
			},
			answer: "The turn", result: client.Turn{},
		},
		{pattern: "GET /contexts/{name}/state", serve: (*Gateway).readState, roles: readers, isShared: true, answer: "The state", result: wire.State{}},
		{
			pattern: "GET /contexts/{name}/transcript", serve: (*Gateway).readTranscript, roles: readers, isShared: true,
			parameters: []parameter{
				{"version", "query", "Version", "For streams: the version that the viewer has"},
				{"Last-Event-ID", "header", "Version", "For streams: the same; overrides `version`"},
			},
			answer: "The document, or a stream", result: transcriptPage{},
			stream: "`document` events with a Transcript as data, `patch` events with a Patch, `status` events with a StatusChange",
		},
		{
			pattern: "POST /contexts/{name}/fork", serve: (*Gateway).forkContext, roles: writers,
			parameters: []parameter{keyParameter},
			body:       forkRequest{}, status: http.StatusCreated, answer: "The new context", result: client.Branched{},
		},
		{pattern: "GET /contexts/{name}/branches", serve: (*Gateway).readBranches, roles: readers, answer: "The branches", result: client.Branches{}},
		{
			pattern: "POST /contexts/{name}/interrupt", serve: (*Gateway).interrupt, roles: writers,
			status: http.StatusAccepted, answer: "The request to stop was accepted",
		},
		{
			pattern: "DELETE /contexts/{name}", serve: (*Gateway).closeContext, roles: writers,
			parameters: []parameter{
				{"reason", "query", "", "The reason recorded in the log; absent: `closed`"},
				{"purge", "query", "", "`true`, or no value, deletes the context for ever"},
				{"forks", "query", "Forks", "What `purge` does with the forks of the context; absent: `keep`"},
			},
			status: http.StatusAccepted, answer: "The request to end the session, or to delete the context, was accepted",
		},
		{pattern: "GET /contexts/{name}/deletion", serve: (*Gateway).readDeletion, roles: readers, answer: "The receipt", result: client.Deletion{}},
		{
			pattern: "POST /contexts/{name}/share", serve: (*Gateway).shareContext, roles: writers,
			parameters: []parameter{{"days", "query", "Days", "The days until the link expires"}},
			status:     http.StatusCreated, answer: "The link", result: auth.Link{},
		},
		{pattern: "GET /limits", serve: (*Gateway).readLimits, roles: readers, answer: "The limits", result: limits{}},
		{pattern: "GET /auth/session", serve: (*Gateway).readSession, roles: public, answer: "The person", result: auth.Who{}},
		{
			pattern: "POST /auth/session", serve: (*Gateway).signIn, roles: public,
			body: auth.Credential{}, status: http.StatusNoContent, answer: "The person has signed in",
		},
		{pattern: "DELETE /auth/session", serve: (*Gateway).signOut, roles: public, status: http.StatusNoContent, answer: "The person has signed out"},
		{pattern: "GET /auth/login", serve: (*Gateway).startSignIn, roles: public, status: http.StatusSeeOther, answer: "To the provider"},
		{
			pattern: "GET /auth/callback", serve: (*Gateway).finishSignIn, roles: public,
			parameters: []parameter{{"code", "query", "", "Proves the sign-in to the gateway"}, {"state", "query", "", "Identifies the sign-in"}},
			status:     http.StatusSeeOther, answer: "To the page",
		},
		{pattern: "GET /healthz", serve: (*Gateway).healthy, roles: public, answer: "It serves", result: health{}},
		{pattern: "GET /readyz", serve: (*Gateway).ready, roles: public, answer: "It is ready", result: readiness{}},
		{pattern: "GET /openapi.json", serve: (*Gateway).describe, roles: public, answer: "OpenAPI 3.1", result: map[string]any{}},
	}
)

// describe reads this document.
func (*Gateway) describe(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(openAPI) // an error means that the client disconnected
	return nil
}

// Paths without a route go to the page. The mux never redirects.
func (g *Gateway) mux() http.Handler {
	all := slices.Clone(routes)
	for _, p := range g.options.Protocols {
		for _, r := range p.Routes {
			all = append(all, r.route())
		}
	}
	mux := http.NewServeMux()
	for _, route := range all {
		mux.HandleFunc(route.pattern, g.admitted(route, g.traced(route.pattern, func(w http.ResponseWriter, r *http.Request) {
			_, err := url.ParseQuery(r.URL.RawQuery) // r.URL.Query ignores errors
			if err != nil {
				err = badRequest("invalid query: %v", err)
			} else {
				err = route.serve(g, w, r)
			}
			if err != nil {
				g.fail(w, r, err)
			}
		})))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at := r.URL.EscapedPath()
		reject, pattern := mux.Handler(r)
		isClean := path.Clean(at) == at || path.Clean(at)+"/" == at && strings.HasSuffix(pattern, "/{$}")
		if pattern != "" && isClean {
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
		return problem(problemMethod, http.StatusMethodNotAllowed, "Method not allowed", "%s is not supported here (allowed: %s)", r.Method, allowed)
	}
	if g.options.Page != nil && g.protocolOf(r.URL.Path) == nil && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		page := &pageResponse{ResponseWriter: w}
		if g.options.Page.ServeHTTP(page, r); !page.missing {
			return nil
		}
	}
	return problem(problemNotFound, http.StatusNotFound, "Not found", "/openapi.json lists the available paths")
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

func (g *Gateway) context(r *http.Request) (named, error) {
	return tenantOf(r).open(r.PathValue("name"))
}
