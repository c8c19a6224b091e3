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
	"github.com/seed-9ed7edd4/chronicle/internal/index"
)

// Problem is an error response (RFC 9457).
type Problem struct {
	Type           ProblemType `json:"type"`
	Title          string      `json:"title"`
	Status         int         `json:"status"`
	Detail         string      `json:"detail,omitempty"`
	RequestID      string      `json:"requestId,omitempty"`                           // identifies the request in the log of the gateway
	Tag            event.Tag   `json:"tag,omitempty"`                                 // of the invalid event
	Field          string      `json:"field,omitempty"`                               // the invalid field of that event
	ContextName    string      `json:"contextName,omitempty" schema:"is=ContextName"` // the new context that was created before the error, or of several, the one that it is about
	ClientEventIDs []string    `json:"clientEventIds,omitempty"`                      // of the input: of its InputRejectedEvent in the log, or to send it again

	// ReplyTo is what the response of a [Protocol] replies to, such as the id of a JSON-RPC request; nil: unknown.
	ReplyTo json.RawMessage `json:"-"`
}

func (p *Problem) Error() string { return strings.TrimSuffix(p.Title+": "+p.Detail, ": ") }

// ProblemType identifies the kind of a [Problem].
type ProblemType string

const (
	problemRequest         ProblemType = "urn:chronicle:problem:request"
	problemName            ProblemType = "urn:chronicle:problem:name"
	problemEvent           ProblemType = "urn:chronicle:problem:event"
	problemNoContext       ProblemType = "urn:chronicle:problem:no-context"
	problemExists          ProblemType = "urn:chronicle:problem:exists"
	problemDeleted         ProblemType = "urn:chronicle:problem:deleted"
	problemDeleting        ProblemType = "urn:chronicle:problem:deleting"
	problemNoStore         ProblemType = "urn:chronicle:problem:no-store"
	problemNoSharing       ProblemType = "urn:chronicle:problem:no-sharing"
	problemRefused         ProblemType = "urn:chronicle:problem:refused"
	problemKeyReused       ProblemType = "urn:chronicle:problem:key-reused"
	problemTooLarge        ProblemType = "urn:chronicle:problem:too-large"
	problemMediaType       ProblemType = "urn:chronicle:problem:media-type"
	problemNotFound        ProblemType = "urn:chronicle:problem:not-found"
	problemMethod          ProblemType = "urn:chronicle:problem:method"
	problemUnauthenticated ProblemType = "urn:chronicle:problem:unauthenticated"
	problemUnchecked       ProblemType = "urn:chronicle:problem:unchecked"
	problemForbidden       ProblemType = "urn:chronicle:problem:forbidden"
	problemHost            ProblemType = "urn:chronicle:problem:host"
	problemOrigin          ProblemType = "urn:chronicle:problem:origin"
	problemRate            ProblemType = "urn:chronicle:problem:rate"
	problemStreams         ProblemType = "urn:chronicle:problem:streams"
	problemQuota           ProblemType = "urn:chronicle:problem:quota"
	problemFull            ProblemType = "urn:chronicle:problem:full"
	problemBusy            ProblemType = "urn:chronicle:problem:busy"
	problemNoWorker        ProblemType = "urn:chronicle:problem:no-worker"
	problemUnanswered      ProblemType = "urn:chronicle:problem:unanswered"
	problemUnreachable     ProblemType = "urn:chronicle:problem:unreachable"
	problemOtherStore      ProblemType = "urn:chronicle:problem:other-store"
	problemTimeout         ProblemType = "urn:chronicle:problem:timeout"
	problemGone            ProblemType = "urn:chronicle:problem:gone"
	problemClosing         ProblemType = "urn:chronicle:problem:closing"
	problemReset           ProblemType = "urn:chronicle:problem:reset"
	problemInternal        ProblemType = "urn:chronicle:problem:internal"
)

func problem(kind ProblemType, status int, title, format string, args ...any) *Problem {
	return &Problem{Type: kind, Title: title, Status: status, Detail: fmt.Sprintf(format, args...)}
}

func badRequest(format string, args ...any) *Problem {
	return problem(problemRequest, http.StatusBadRequest, "Invalid request", format, args...)
}

// BadRequest returns a problem with the status 400. The field, "" for none, is that of the request.
func BadRequest(field, format string, args ...any) *Problem {
	p := badRequest(format, args...)
	p.Field = field
	return p
}

// After errReset, viewers reconnect and read the log again.
var errReset = problem(problemReset, http.StatusServiceUnavailable, "The log was replaced",
	"the context was reset, or deleted and created again: read it again")

var errClosing = problem(problemClosing, http.StatusServiceUnavailable, "The gateway is shutting down", "")

// problemTypes maps errors to responses. The text of an error is sent only if detail is set.
var problemTypes = []struct {
	err    error
	kind   ProblemType
	status int
	title  string
	detail bool
}{
	{client.ErrName, problemName, http.StatusBadRequest, "Invalid context name", true},
	{index.ErrQuery, problemRequest, http.StatusBadRequest, "Invalid request", true},
	{client.ErrDeleted, problemDeleted, http.StatusGone, "The context was deleted", false},
	{client.ErrNoContext, problemNoContext, http.StatusNotFound, "Context not found", false},
	{client.ErrNoEvent, problemNotFound, http.StatusNotFound, "Event not found", true},
	{client.ErrExists, problemExists, http.StatusConflict, "The context exists", false},
	{client.ErrDeleting, problemDeleting, http.StatusConflict, "A deletion of the context runs", true},
	{client.ErrNoArchive, problemNoStore, http.StatusNotImplemented, "The gateway has no blob store", false},
	{client.ErrNoAttachment, problemNotFound, http.StatusNotFound, "Attachment not found", true},
	{client.ErrKeyReused, problemKeyReused, http.StatusUnprocessableEntity, "The Idempotency-Key or a clientEventId was used for other events", false},
	{client.ErrRefused, problemRefused, http.StatusConflict, "The context rejected the events", true},
	{client.ErrFull, problemFull, http.StatusServiceUnavailable, "The context is full until a worker runs", true},
	{client.ErrNoWorker, problemNoWorker, http.StatusServiceUnavailable, "No worker responded for the context", false},
	{client.ErrUnanswered, problemUnanswered, http.StatusServiceUnavailable, "The run was terminated before it answered", false},
	{client.ErrBusy, problemBusy, http.StatusServiceUnavailable, "Temporal is busy or does not respond", false},
	{client.ErrUnreachable, problemUnreachable, http.StatusServiceUnavailable, "Temporal is unreachable", false},
	// 503, since the request can succeed when the operator has corrected the configuration.
	{client.ErrOtherStore, problemOtherStore, http.StatusServiceUnavailable, "The gateway and the workers have different blob stores", false},
	{context.DeadlineExceeded, problemTimeout, http.StatusGatewayTimeout, "The request timed out", false},
}

// storeAdvice replaces [client.StoreAdvice], which an HTTP client cannot follow.
const storeAdvice = "set --blob-url or BLOB_URL of the gateway to the blob store of the workers"

// inputError is the error of a Send.
type inputError struct {
	error
	clientEventIDs []string // nil: the input was not sent
}

func (e *inputError) Unwrap() error { return e.error }

func problemOf(err error) *Problem {
	var (
		input *inputError
		known *Problem
		field *event.FieldError
		large *http.MaxBytesError
	)
	switch {
	case errors.As(err, &input):
		p := *problemOf(input.error)
		p.ClientEventIDs = input.clientEventIDs
		return &p
	case errors.As(err, &known):
		return known
	case errors.As(err, &field):
		detail := strings.ReplaceAll(err.Error(), client.StoreAdvice, storeAdvice)
		p := problem(problemEvent, http.StatusUnprocessableEntity, "Invalid events", "%s", detail)
		p.Tag, p.Field = field.Tag, field.Field
		return p
	case errors.As(err, &large):
		return problem(problemTooLarge, http.StatusRequestEntityTooLarge, "The request is too large", "the body is longer than %d bytes", large.Limit)
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
	return problem(problemInternal, http.StatusInternalServerError, "Internal error", "see the log of the gateway")
}

func (g *Gateway) fail(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil && errors.Is(err, context.Canceled) {
		// A client that closed only its sending side still reads the response.
		err = problem(problemGone, http.StatusRequestTimeout, "The client closed the connection", "")
	}
	p := *problemOf(err)
	p.RequestID = requestID(r)
	if out, ok := w.(*response); ok {
		out.problem = strings.TrimPrefix(string(p.Type), "urn:chronicle:problem:")
		p.ReplyTo = out.replyTo
	}
	if p.Status >= http.StatusInternalServerError && !errors.As(err, new(*Problem)) {
		g.options.Log.Error("request failed", "request_id", p.RequestID, "path", r.URL.Path, "error", event.Redact(err.Error(), 0))
	}
	if p.Status == http.StatusServiceUnavailable || p.Status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	if protocol := g.protocolOf(r.URL.Path); protocol != nil {
		w.Header().Set("Cache-Control", "no-store")
		protocol.Fail(w, &p)
		return
	}
	w.Header().Set("Content-Type", "application/problem+json")
	writeJSON(w, p.Status, p)
}

func writeJSON(w http.ResponseWriter, status int, value any) {
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "application/json")
	}
	if w.Header().Get("Cache-Control") == "" {
		w.Header().Set("Cache-Control", "no-store")
	}
	w.WriteHeader(status)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value) // an error means that the client disconnected
}
