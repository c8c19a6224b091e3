package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/session"
)

// Problem is an error as clients see it (RFC 9457).
type Problem struct {
	// Type tells problems apart: "urn:chronicle:problem:" and a word. Those of
	// openapi.json are all there are.
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
	// RequestID finds the request in the log of the gateway.
	RequestID string `json:"requestId,omitempty"`
	// Tag and Field say which field of which event cannot be taken.
	Tag   event.Tag `json:"tag,omitempty"`
	Field string    `json:"field,omitempty"`
	// ClientEventIDs find, in the log of the context, the refusal of an input.
	ClientEventIDs []string `json:"clientEventIds,omitempty"`
}

// Error is the title and the detail, if there is one.
func (p *Problem) Error() string { return strings.TrimSuffix(p.Title+": "+p.Detail, ": ") }

// problem is one of the given kind.
func problem(kind string, status int, title, format string, args ...any) *Problem {
	return &Problem{Type: "urn:chronicle:problem:" + kind, Title: title, Status: status, Detail: fmt.Sprintf(format, args...)}
}

// badRequest is about a parameter or a header.
func badRequest(format string, args ...any) *Problem {
	return problem("request", http.StatusBadRequest, "The request cannot be understood", format, args...)
}

// errReset: what was read is not in the log any more; a viewer that comes back
// reads it again.
var errReset = problem("reset", http.StatusServiceUnavailable, "The context was reset", "read it again")

// errClosing: streams are ended, and none begins.
var errClosing = problem("closing", http.StatusServiceUnavailable, "The gateway is about to end", "")

// kinds are the errors of a session that clients are told of. The text of the
// others, and of those without detail, is for operators.
var kinds = []struct {
	err    error
	kind   string
	status int
	title  string
	detail bool
}{
	{session.ErrName, "name", http.StatusBadRequest, "No context can have that name", true},
	{session.ErrNoContext, "no-context", http.StatusNotFound, "There is no context of that name", false},
	{session.ErrNoAttachment, "not-found", http.StatusNotFound, "There is no such attachment", true},
	{session.ErrKeyReused, "key-reused", http.StatusUnprocessableEntity, "The Idempotency-Key was used with another body", false},
	{session.ErrRefused, "refused", http.StatusConflict, "The context did not take the events", true},
	{session.ErrFull, "full", http.StatusServiceUnavailable, "The context is full until a worker runs", true},
	{session.ErrNoWorker, "no-worker", http.StatusServiceUnavailable, "No worker answers for the context", false},
	{session.ErrUnreachable, "unreachable", http.StatusServiceUnavailable, "Temporal is unreachable", false},
	{context.DeadlineExceeded, "timeout", http.StatusGatewayTimeout, "It took too long", false},
}

// problemOf is the one place that decides what a client is told of an error.
func problemOf(err error) *Problem {
	var (
		told  *Problem
		field *event.FieldError
		large *http.MaxBytesError
	)
	switch {
	case errors.As(err, &told):
		return told
	case errors.As(err, &field):
		p := problem("event", http.StatusUnprocessableEntity, "No context could take the events", "%v", err)
		p.Tag, p.Field = field.Tag, field.Field
		return p
	case errors.As(err, &large):
		return problem("too-large", http.StatusRequestEntityTooLarge, "The request is too large", "a body has at most %d bytes", large.Limit)
	}
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			p := problem(k.kind, k.status, k.title, "")
			if k.detail {
				p.Detail = event.Redact(err.Error(), 0)
			}
			return p
		}
	}
	return problem("internal", http.StatusInternalServerError, "Internal error", "the log of the gateway has more")
}

// fail answers a request with what is wrong.
func (g *Gateway) fail(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil && errors.Is(err, context.Canceled) {
		// Nobody is there any more, as a rule. A client that only sends no more must
		// not take silence for success.
		err = problem("gone", http.StatusRequestTimeout, "The client sent no more", "")
	}
	p := *problemOf(err)
	p.RequestID = requestID(r)
	// A Problem that was made here, as of too many streams, is no failure.
	if p.Status >= http.StatusInternalServerError && !errors.As(err, new(*Problem)) {
		g.options.Log.Error("a request failed", "request_id", p.RequestID, "error", event.Redact(err.Error(), 0))
	}
	if p.Status == http.StatusServiceUnavailable || p.Status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	w.Header().Set("Content-Type", "application/problem+json")
	writeJSON(w, p.Status, p)
}

// writeJSON answers with a value. The content type is application/json, unless it
// is set already.
func writeJSON(w http.ResponseWriter, status int, value any) {
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "application/json")
	}
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value) // an error means that nobody is there any more
}
