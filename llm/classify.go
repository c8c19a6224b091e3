package llm

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// How much of an error's text is kept, in bytes: of what the provider said and
// of what there is to add to it.
const (
	maxMessage = 400
	maxAdvice  = 150
)

// fail makes an [Error] of whatever ended a request.
func (t *Target) fail(ctx context.Context, err error) *Error {
	e := &Error{ProviderID: t.ProviderID}
	var refused *refusal
	var unreached *connectionError
	var network net.Error
	switch {
	case ctx.Err() != nil:
		t.failCanceled(ctx, e)
	case errors.As(err, &refused):
		t.failRefused(refused, e)
	case errors.As(err, &network) && network.Timeout():
		e.Kind, e.Message = KindTimeout, t.clean("connect to "+t.BaseURL+": timeout", maxMessage)
	case errors.As(err, &unreached):
		e.Kind, e.Message = KindConnection, t.clean("connect to "+t.BaseURL+": "+connectionProblem(unreached.err), maxMessage)
	default:
		e.Kind = KindTruncated
		e.Message = "the answer stopped in the middle: " + streamProblem(err)
	}
	return e
}

func (t *Target) failCanceled(ctx context.Context, e *Error) {
	e.cause = context.Cause(ctx)
	var silent silence
	if errors.As(e.cause, &silent) {
		e.Kind, e.Message = KindTimeout, silent.Error()
		return
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) || errors.Is(e.cause, context.DeadlineExceeded) {
		e.Kind, e.Message = KindTimeout, "no complete answer in the time that the request had"
		return
	}
	e.Kind, e.Message = KindCanceled, t.clean(e.cause.Error(), maxMessage)
}

// failRefused tells of a refusal. What the server wrote is repeated only if a
// configured provider sent an error object: any other server may be one that the
// sender of the event could not reach, and must not be readable through a log.
func (t *Target) failRefused(r *refusal, e *Error) {
	said := readComplaint(r.body)
	e.Status = r.status
	if e.Status < 300 {
		e.Status = said.status()
	}
	e.RetryAfter = RetryAfter(r.header, time.Now())
	e.Kind = said.kind(e.Status)
	e.blamesImages = noVision.MatchString(said.message)
	switch {
	case r.foreign && len(bytes.TrimSpace(r.body)) == 0:
		e.Kind, e.Message = KindTruncated, "the answer is empty"
	case r.foreign && !said.isError:
		e.Kind = KindTruncated
		e.Message = "the answer is not an event stream but " + contentKind(r.header)
	case t.isConfigured && said.isError:
		e.Message = firstOf(said.message, said.code, said.typ)
	}
	e.Message = t.clean(firstOf(e.Message, http.StatusText(e.Status), "no reason given"), maxMessage)
	if advice := t.advice(e); advice != "" {
		e.Message += " (" + t.clean(advice, maxAdvice) + ")"
	}
}

// contentKind names the media type of a response, if it is a common one.
func contentKind(header http.Header) string {
	media, _, _ := mime.ParseMediaType(header.Get("Content-Type"))
	switch media {
	case "application/json", "text/event-stream", "text/html", "text/plain":
		return media
	case "":
		return "of no type"
	}
	return "of another type"
}

// connectionProblem classifies a failure to connect. The text of the error is
// not repeated: it may hold what a server that speaks no HTTP sent, the names in
// its certificate, and addresses of the internal network.
func connectionProblem(err error) string {
	var dns *net.DNSError
	var certificate *tls.CertificateVerificationError
	var alert tls.AlertError
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return "no such host"
	case errors.As(err, &dns):
		return "the host name cannot be resolved"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.ECONNRESET):
		return "connection reset"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "host unreachable"
	case errors.As(err, &certificate):
		return "its certificate is not trusted, or is for another host"
	case errors.As(err, &alert), errors.As(err, &record), errors.Is(err, http.ErrSchemeMismatch):
		return "no TLS connection (is the scheme of the URL right?)"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection was closed before an answer came"
	}
	return "no HTTP response"
}

// streamProblem classifies the failure of an answer that had begun.
func streamProblem(err error) string {
	var syntax *json.SyntaxError
	var field *json.UnmarshalTypeError
	switch {
	case errors.Is(err, errTooMuch):
		return errTooMuch.Error()
	case errors.As(err, &syntax), errors.As(err, &field):
		return "an event is not a chunk of a chat completion"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return "the connection was closed"
	}
	return "the connection failed"
}

// advice is what helps to mend the more common mistakes.
func (t *Target) advice(e *Error) string {
	switch {
	case e.Status >= 300 && e.Status < 400:
		return t.BaseURL + " redirects, which is not followed: configure the final URL"
	case e.Kind == KindUnauthorized && t.keyRef == "":
		return "no key was sent: none is configured for " + t.BaseURL
	case e.Kind == KindUnauthorized:
		return "with the key from " + t.keyRef
	case e.Kind == KindNotFound:
		return fmt.Sprintf("model %q at %s", t.Model, t.BaseURL)
	}
	return ""
}

// clean makes a text fit for a log: one line without secrets, cut at max bytes.
func (t *Target) clean(text string, max int) string {
	text = strings.ToValidUTF8(text, "�")
	text = strings.Join(strings.Fields(t.secrets.Replace(text)), " ")
	return event.Redact(text, max)
}

// complaint is what a provider says about an error, read from any of the
// shapes in which providers say it.
type complaint struct {
	code    string // a number too, in digits
	typ     string
	message string
	isError bool // the body was an error object, and not just some text
}

// readComplaint reads the body of a refusal. A body that is not JSON is only
// used to classify it.
func readComplaint(body []byte) complaint {
	body = bytes.TrimSpace(body)
	if len(body) > 0 && body[0] == '[' {
		// Gemini wraps it in an array.
		var array []json.RawMessage
		if json.Unmarshal(body, &array) == nil && len(array) > 0 {
			body = array[0]
		}
	}
	var outer map[string]json.RawMessage
	if json.Unmarshal(body, &outer) != nil {
		return complaint{message: string(body)}
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(outer["error"], &fields) != nil || fields == nil {
		// The error is a string, or there is nothing around it.
		fields = outer
	}
	c := complaint{
		code:    plain(fields["code"]),
		typ:     firstOf(plain(fields["type"]), plain(fields["status"])),
		message: firstOf(plain(fields["message"]), plain(fields["detail"]), plain(fields["error"])),
	}
	c.isError = c.message != "" || outer["error"] != nil
	// OpenRouter passes on there what the provider behind it said.
	var metadata struct {
		Raw json.RawMessage `json:"raw"`
	}
	if json.Unmarshal(fields["metadata"], &metadata) == nil && plain(metadata.Raw) != "" {
		c.message += ": " + plain(metadata.Raw)
	}
	// Azure keeps the reason for a filter there.
	var azure struct {
		Code string `json:"code"`
	}
	if json.Unmarshal(fields["innererror"], &azure) == nil && azure.Code != "" {
		c.typ = azure.Code
	}
	return c
}

// plain is a JSON string as it is, any other value as its JSON, and one that
// says nothing as "".
func plain(raw json.RawMessage) string {
	switch string(raw) {
	case "", "null", "{}", "[]":
		return ""
	}
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// status is the HTTP status that the code stands for, or 0.
func (c complaint) status() int {
	if n, err := strconv.Atoi(c.code); err == nil && n >= 400 && n <= 599 {
		return n
	}
	return 0
}

var (
	tooLong  = regexp.MustCompile(`(?i)context[_ ](length|window|size)|maximum (context|input)|too many (input )?tokens|prompt is too long|input is too long|token count.{0,40} exceeds|reduce the length of the messages`)
	filtered = regexp.MustCompile(`(?i)content[_ ](filter|policy|management)|ResponsibleAIPolicyViolation|data_inspection_failed|flagged as`)
	noModel  = regexp.MustCompile(`(?i)\bmodel\b.{0,100}\b(not found|not exist|does not exist|doesn't exist)|no such model`)
	noMoney  = regexp.MustCompile(`(?i)insufficient[_ ](quota|balance|credit)|billing_hard_limit|exceeded your current quota`)
)

// kind classifies by what is said, where the status would mislead, and then by
// the status; without one, by the type of the error.
func (c complaint) kind(status int) Kind {
	names := c.code + " " + c.typ
	switch {
	case status == http.StatusPaymentRequired || noMoney.MatchString(names):
		return KindQuota
	case status == http.StatusTooManyRequests:
		return KindRateLimited
	case status == http.StatusUnauthorized:
		return KindUnauthorized
	case tooLong.MatchString(names) || tooLong.MatchString(c.message) || strings.Contains(c.typ, "exceed_context"):
		return KindContextTooLong
	case filtered.MatchString(names) || status < 500 && filtered.MatchString(c.message):
		return KindContentFilter
	}
	if strings.Contains(names, "model_not_found") || (status == 400 || status == 500) && noModel.MatchString(c.message) {
		return KindNotFound
	}
	switch {
	case status == http.StatusForbidden:
		return KindUnauthorized
	case status == http.StatusNotFound:
		return KindNotFound
	case status == http.StatusRequestTimeout:
		return KindTimeout
	case status == http.StatusConflict, status == http.StatusTooEarly, status >= 500:
		return KindServer
	case status == http.StatusRequestEntityTooLarge:
		return KindContextTooLong
	case status >= 300:
		return KindBadRequest
	}
	switch {
	case strings.Contains(names, "rate_limit"), strings.Contains(names, "RESOURCE_EXHAUSTED"):
		return KindRateLimited
	case strings.Contains(names, "authentication"), strings.Contains(names, "permission"), strings.Contains(names, "invalid_api_key"):
		return KindUnauthorized
	case strings.Contains(names, "invalid_request"):
		return KindBadRequest
	}
	return KindServer
}
