package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway/auth"
)

// Protocol serves the contexts to clients of another protocol, below a path of its own. Its requests are admitted like
// those of the gateway: authenticated, as a tenant, within the limits, and audited.
type Protocol struct {
	Path   string // of all its routes, such as "/v1/"
	Routes []ProtocolRoute
	// Fail writes the response for an error: status, body and Content-Type. It is also called for requests below Path that
	// are not admitted or have no route.
	Fail func(w http.ResponseWriter, p *Problem)
}

// ProtocolRoute is an operation of a [Protocol].
type ProtocolRoute struct {
	Pattern   string      // as in [http.ServeMux], such as "GET /v1/models"
	Operation string      // names the operation in the audit log
	Roles     []auth.Role // any of which admits a sender; empty, but not nil: the operation is public and opens no context
	Serve     func(x *Exchange) error
}

// route returns the route of the gateway that serves it.
func (r ProtocolRoute) route() route {
	return route{pattern: r.Pattern, name: r.Operation, roles: r.Roles,
		serve: func(g *Gateway, w http.ResponseWriter, request *http.Request) error {
			x := &Exchange{Request: request, w: w, gateway: g, body: share{of: g.bodies}, read: share{of: g.answers}}
			defer x.end()
			return r.Serve(x)
		}}
}

// protocolOf returns the protocol of a path; nil: the gateway's own.
func (g *Gateway) protocolOf(path string) *Protocol {
	for i, p := range g.options.Protocols {
		if strings.HasPrefix(path, p.Path) {
			return &g.options.Protocols[i]
		}
	}
	return nil
}

// Exchange is a request of a [Protocol] and its response.
type Exchange struct {
	Request *http.Request

	w       http.ResponseWriter
	gateway *Gateway
	body    share
	read    share
	cleanup []func()
	counted bool // as a stream
}

func (x *Exchange) end() {
	for _, f := range x.cleanup {
		f()
	}
	x.body.release()
	x.read.release()
}

// maxValues bounds what the decoded JSON of a request occupies: a short value can become a large struct.
const maxValues = 200_000

// Body returns the JSON of the request, whose size counts as that of a body until it is sent to a context, or until the
// exchange ends. The error is a [*Problem].
func (x *Exchange) Body() ([]byte, error) {
	body, err := x.gateway.body(x.w, x.Request, &x.body)
	if err == nil && separators(body) > maxValues {
		err = badRequest("the body has more than %d values (send only the newest messages)", maxValues)
	}
	return body, err
}

// separators returns the number of commas between the values of a JSON text.
func separators(text []byte) (n int) {
	isString := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			isString = !isString
		case c == '\\' && isString:
			i++
		case c == ',' && !isString:
			n++
		}
	}
	return n
}

// IdempotencyKey returns the header of that name; "" if there is none. [Handle.Send] uses it, too.
func (x *Exchange) IdempotencyKey() (string, error) { return idempotencyKey(x.Request) }

// Identity is who sends the request; zero without authentication.
func (x *Exchange) Identity() auth.Identity { return identityOf(x.Request) }

// Perform names the operation of an exchange whose route serves several, for the audit log, and checks that the sender has
// one of the roles.
func (x *Exchange) Perform(operation string, roles ...auth.Role) error {
	x.gateway.audit(x.w, x.Request, operation, x.Identity())
	if x.gateway.options.Auth != nil && !slices.ContainsFunc(roles, x.Identity().Has) {
		return missingRole(roles...)
	}
	return nil
}

// PublicPath is [Options.PublicPath].
func (x *Exchange) PublicPath() string { return x.gateway.options.PublicPath }

// ReplyTo sets the [Problem.ReplyTo] of the errors of the exchange.
func (x *Exchange) ReplyTo(id json.RawMessage) {
	if out, ok := x.w.(*response); ok {
		out.replyTo = id
	}
}

// Header is that of the response, until it begins.
func (x *Exchange) Header() http.Header { return x.w.Header() }

// JSON writes the response.
func (x *Exchange) JSON(status int, value any) { writeJSON(x.w, status, value) }

// NoContent writes a response without a body.
func (x *Exchange) NoContent() { x.w.WriteHeader(http.StatusNoContent) }

// Report logs an error of an operation that does not fail the request; nil is none.
func (x *Exchange) Report(operation string, err error) {
	if err != nil {
		x.gateway.options.Log.Error(operation+" failed", "request_id", requestID(x.Request), "error", event.Redact(err.Error(), 0))
	}
}

// Stream describes a response of server-sent events.
type Stream struct {
	// Begin has the first frames, which are sent at once; nil: the stream begins with those of Next.
	Begin []byte
	// Next returns the frames ([Frame]) for an item; none for an item that the protocol does not show. The error
	// [io.EOF] ends the stream after the frames. Nil: the stream ends after Begin.
	Next func(Item) (frames []byte, err error)
	// Fail returns the frames for an error after the response began. Before, the error is that of the response.
	Fail func(*Problem) []byte
}

// Frame encodes a server-sent event. Without an id and a kind, it has data only. Data is one line.
func Frame(id, kind string, data []byte) []byte { return frame(id, kind, data) }

// Stream follows the context from after an event, see [Handle.Follow], and writes what happens as server-sent events. The
// stream begins with its first frame, and ends when the client disconnects.
func (x *Exchange) Stream(h *Handle, from string, s Stream) error {
	v, err := h.view(from)
	if err != nil {
		return err
	}
	fail := func(err error) []byte { return s.Fail(problemOf(err)) }
	return x.gateway.serveStream(x.w, x.Request, fail, func(ctx context.Context, out *stream) (<-chan struct{}, error) {
		if len(s.Begin) > 0 && !out.isOpen {
			if err := out.send(s.Begin); err != nil {
				return nil, err
			}
		}
		if s.Next == nil {
			return nil, errEnd
		}
		isEnd, before := false, v.at.deltas
		changed, err := v.each(ctx, h.context, func(item Item) error {
			frames, err := s.Next(item)
			isEnd = errors.Is(err, io.EOF)
			if len(frames) > 0 {
				err = errors.Join(out.write(frames), err)
			}
			return err
		})
		if out.isOpen {
			err = errors.Join(out.send(), err)
			x.gateway.sent(before, v.at.deltas)
		}
		if isEnd && !errors.Is(err, errGone) {
			return nil, errEnd
		}
		return changed, err
	})
}

// Item is what happens in a context: a recorded event, or live a piece of the running answer or the progress of a tool
// call ([event.TextDelta], [event.ReasoningDelta], [event.ToolProgress]).
type Item struct {
	Event event.Event
	// Offset is the number of bytes of the text, or of the reasoning, of the attempt that precede a delta.
	Offset int
}

// each passes on what is new.
func (v *eventViewer) each(ctx context.Context, c Context, do func(Item) error) (changed <-chan struct{}, err error) {
	return v.advance(ctx, func(update *eventUpdate) error {
		for _, e := range update.events {
			if err := do(Item{Event: e.event}); err != nil {
				return err
			}
		}
		if update.answer != nil {
			for _, item := range update.answer.deltas {
				if err := do(item); err != nil {
					return err
				}
			}
		}
		for _, e := range update.progress {
			if err := do(Item{Event: e.event}); err != nil {
				return err
			}
		}
		if update.isLost && v.from < update.at.last { // else the viewer waits for what follows
			return errLost
		}
		return nil
	}, func(ctx context.Context) error {
		return readLog(ctx, c, &v.at, func(e event.Event) error { return do(Item{Event: e}) })
	})
}

// Arguments returns the JSON of the arguments of a call.
func Arguments(call event.ToolCall) string {
	if len(call.Parameters) == 0 {
		return "{}"
	}
	return string(call.Parameters)
}

// PlainText returns the text of a JSON string, and other JSON as it is.
func PlainText(value []byte) string {
	var text string
	if json.Unmarshal(value, &text) != nil {
		return string(value)
	}
	return text
}
