package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
)

// Problem is an error response (RFC 9457).
type Problem struct {
	Type           string    `json:"type"` // "urn:chronicle:problem:" and a word that openapi.json lists
	Title          string    `json:"title"`
	Status         int       `json:"status"`
	Detail         string    `json:"detail,omitempty"`
	RequestID      string    `json:"requestId,omitempty"`      // in the log of the gateway
	Tag            event.Tag `json:"tag,omitempty"`            // of the invalid event
	Field          string    `json:"field,omitempty"`          // the invalid field of that event
	ClientEventIDs []string  `json:"clientEventIds,omitempty"` // of all events of the rejected input
}

func (p *Problem) Error() string { return strings.TrimSuffix(p.Title+": "+p.Detail, ": ") }

const problemPrefix = "urn:chronicle:problem:"

func problem(kind string, status int, title, format string, args ...any) *Problem {
	return &Problem{Type: problemPrefix + kind, Title: title, Status: status, Detail: fmt.Sprintf(format, args...)}
}

func badRequest(format string, args ...any) *Problem {
	return problem("request", http.StatusBadRequest, "Invalid request", format, args...)
}

// After errReset, viewers reconnect and read the log again.
var errReset = problem("reset", http.StatusServiceUnavailable, "The context was reset", "read it again")

var errClosing = problem("closing", http.StatusServiceUnavailable, "The gateway is shutting down", "")

// problemTypes maps errors to responses. The text of an error is sent only if detail is set.
var problemTypes = []struct {
	err    error
	kind   string
	status int
	title  string
	detail bool
}{
	{client.ErrName, "name", http.StatusBadRequest, "Invalid context name", true},
	{client.ErrNoContext, "no-context", http.StatusNotFound, "Context not found", false},
	{client.ErrNoAttachment, "not-found", http.StatusNotFound, "Attachment not found", true},
	{client.ErrKeyReused, "key-reused", http.StatusUnprocessableEntity, "The Idempotency-Key or a clientEventId was used for other events", false},
	{client.ErrRefused, "refused", http.StatusConflict, "The context rejected the events", true},
	{client.ErrFull, "full", http.StatusServiceUnavailable, "The context is full until a worker runs", true},
	{client.ErrNoWorker, "no-worker", http.StatusServiceUnavailable, "No worker responded for the context", false},
	{client.ErrUnreachable, "unreachable", http.StatusServiceUnavailable, "Temporal is unreachable", false},
	// 503, since the request can succeed when the operator has corrected the configuration.
	{client.ErrOtherStore, "other-store", http.StatusServiceUnavailable, "The gateway and the workers have different blob stores", false},
	{context.DeadlineExceeded, "timeout", http.StatusGatewayTimeout, "The request timed out", false},
}

// storeAdvice replaces [client.StoreAdvice], which an HTTP client cannot follow.
const storeAdvice = "set --blob-url or BLOB_URL of the gateway to the blob store of the workers"

func problemOf(err error) *Problem {
	var (
		known *Problem
		field *event.FieldError
		large *http.MaxBytesError
	)
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &field):
		detail := strings.ReplaceAll(err.Error(), client.StoreAdvice, storeAdvice)
		p := problem("event", http.StatusUnprocessableEntity, "Invalid events", "%s", detail)
		p.Tag, p.Field = field.Tag, field.Field
		return p
	case errors.As(err, &large):
		return problem("too-large", http.StatusRequestEntityTooLarge, "The request is too large", "the body is longer than %d bytes", large.Limit)
	}
	for _, k := range problemTypes {
		if errors.Is(err, k.err) {
			p := problem(k.kind, k.status, k.title, "")
			if k.detail {
				p.Detail = event.Redact(err.Error(), 0)
			}
			return p
		}
	}
	return problem("internal", http.StatusInternalServerError, "Internal error", "see the log of the gateway")
}

func (g *Gateway) fail(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil && errors.Is(err, context.Canceled) {
		// A client that closed only its sending side still reads the response.
		err = problem("gone", http.StatusRequestTimeout, "The client closed the connection", "")
	}
	p := *problemOf(err)
	p.RequestID = requestID(r)
	if out, ok := w.(*response); ok {
		out.problem = strings.TrimPrefix(p.Type, problemPrefix)
	}
	if p.Status >= http.StatusInternalServerError && !errors.As(err, new(*Problem)) {
		g.options.Log.Error("request failed", "request_id", p.RequestID, "path", r.URL.Path, "error", event.Redact(err.Error(), 0))
	}
	if p.Status == http.StatusServiceUnavailable || p.Status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	w.Header().Set("Content-Type", "application/problem+json")
	writeJSON(w, p.Status, p)
}

func writeJSON(w http.ResponseWriter, status int, value any) {
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "application/json")
	}
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value) // an error means that the client disconnected
}
