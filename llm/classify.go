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

// Maximum lengths in an error, in bytes: of the provider's message and of our advice.
const (
	maxMessage = 400
	maxAdvice  = 150
)

func (t *Target) fail(ctx context.Context, err error) *Error {
	e := &Error{ProviderID: t.ProviderID}
	var response *errorResponse
	var unreached *connectionError
	var network net.Error
	switch {
	case ctx.Err() != nil:
		t.failCanceled(ctx, e)
	case errors.As(err, &response):
		t.failResponse(response, e)
	case errors.As(err, &network) && network.Timeout():
		e.Kind, e.Message = KindTimeout, t.clean("connect to "+t.BaseURL+": timeout", maxMessage)
	case errors.As(err, &unreached):
		e.Kind, e.Message = KindConnection, t.clean("connect to "+t.BaseURL+": "+connectionProblem(unreached.err), maxMessage)
	default:
		e.Kind = KindTruncated
		e.Message = "the answer broke off: " + streamProblem(err)
	}
	return e
}

func (t *Target) failCanceled(ctx context.Context, e *Error) {
	e.cause = context.Cause(ctx)
	var timeout tokenTimeout
	if errors.As(e.cause, &timeout) {
		e.Kind, e.Message = KindTimeout, timeout.Error()
		return
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) || errors.Is(e.cause, context.DeadlineExceeded) {
		e.Kind, e.Message = KindTimeout, "no complete answer within the timeout of the request"
		return
	}
	e.Kind, e.Message = KindCanceled, t.clean(e.cause.Error(), maxMessage)
}

// failResponse quotes the response only if it is the error object of a preset or a configured
// provider. The sender of an event may name a server that only the worker can reach, and must not read
// the response through the log.
func (t *Target) failResponse(r *errorResponse, e *Error) {
	body := parseErrorBody(r.body)
	e.Status = r.status
	if e.Status < 300 {
		e.Status = body.status()
	}
	e.RetryAfter = RetryAfter(r.header, time.Now())
	e.Kind = body.kind(e.Status)
	if e.Kind == KindContextTooLong {
		stated := limitIn(body.message + "\n" + string(r.body)) // llama.cpp states the numbers in other fields
		e.Window, e.InputTokens = stated.window, stated.input
	}
	e.refusal = t.refusalIn(body)
	switch {
	case r.isNotStream && len(bytes.TrimSpace(r.body)) == 0:
		e.Kind, e.Message = KindTruncated, "the answer is empty"
	case r.isNotStream && !body.isError:
		e.Kind = KindTruncated
		e.Message = "the response has no stream events (media type: " + contentKind(r.header) + ")"
	case t.isConfigured && body.isError:
		e.Message = firstOf(body.message, body.code, body.typ)
	}
	e.Message = t.clean(firstOf(e.Message, http.StatusText(e.Status), "no reason given"), maxMessage)
	if advice := t.advice(e); advice != "" {
		e.Message += " (" + t.clean(advice, maxAdvice) + ")"
	}
}

func contentKind(header http.Header) string {
	media, _, _ := mime.ParseMediaType(header.Get("Content-Type"))
	switch media {
	case "application/json", "text/event-stream", "text/html", "text/plain":
		return media
	case "":
		return "none"
	}
	return "other"
}

// connectionProblem omits the text of the error, which may contain internal addresses, names in a
// certificate, or the output of a server that does not speak HTTP.
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
		return "the certificate is not trusted, or is for another host"
	case errors.As(err, &alert), errors.As(err, &record), errors.Is(err, http.ErrSchemeMismatch):
		return "no TLS connection (check the scheme of the URL)"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection was closed before a response"
	}
	return "no HTTP response"
}

func streamProblem(err error) string {
	var syntax *json.SyntaxError
	var field *json.UnmarshalTypeError
	switch {
	case errors.Is(err, errTooLarge):
		return errTooLarge.Error()
	case errors.As(err, &syntax), errors.As(err, &field):
		return "an event is not a chunk of a chat completion"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return "the connection was closed"
	}
	return "the connection failed"
}

func (t *Target) advice(e *Error) string {
	switch {
	case e.Status >= 300 && e.Status < 400:
		return t.BaseURL + " redirects, and redirects are not followed: configure the final URL"
	case e.Kind == KindUnauthorized && t.keyRef == "":
		return "no key was sent: none is configured for " + t.BaseURL
	case e.Kind == KindUnauthorized:
		return "check the key in " + t.keyRef
	case e.Kind == KindNotFound:
		return fmt.Sprintf("model %q at %s", t.Model, t.BaseURL)
	}
	return ""
}

// clean removes secrets from a text and makes it a single line. A longer text is cut after max bytes, and its length
// is appended.
func (t *Target) clean(text string, max int) string {
	text = strings.ToValidUTF8(text, "�")
	text = strings.Join(strings.Fields(t.secrets.Replace(text)), " ")
	return event.Redact(text, max)
}

type errorBody struct {
	code    string // digits if it is a number
	typ     string
	message string
	param   string // that the error names
	isError bool   // the body was an error object
}

// parseErrorBody also accepts a body that is not JSON. Such a body only serves to classify the error.
func parseErrorBody(body []byte) errorBody {
	body = bytes.TrimSpace(body)
	if len(body) > 0 && body[0] == '[' {
		// Gemini wraps the error object in an array.
		var array []json.RawMessage
		if json.Unmarshal(body, &array) == nil && len(array) > 0 {
			body = array[0]
		}
	}
	var outer map[string]json.RawMessage
	if json.Unmarshal(body, &outer) != nil {
		return errorBody{message: string(body)}
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(outer["error"], &fields) != nil || fields == nil {
		// The error is a string, or the fields are at the top level.
		fields = outer
	}
	c := errorBody{
		code:    plain(fields["code"]),
		typ:     firstOf(plain(fields["type"]), plain(fields["status"])),
		message: firstOf(plain(fields["message"]), validationErrors(fields["detail"]), plain(fields["detail"]), plain(fields["error"])),
		param:   plain(fields["param"]),
	}
	c.isError = c.message != "" || outer["error"] != nil
	// OpenRouter: the error of the provider behind it.
	var metadata struct {
		Raw json.RawMessage `json:"raw"`
	}
	if json.Unmarshal(fields["metadata"], &metadata) == nil && plain(metadata.Raw) != "" {
		c.message += ": " + plain(metadata.Raw)
	}
	// Azure: the reason of its content filter.
	var azure struct {
		Code string `json:"code"`
	}
	if json.Unmarshal(fields["innererror"], &azure) == nil && azure.Code != "" {
		c.typ = azure.Code
	}
	return c
}

// plain returns a JSON string decoded, an empty value as "", and any other value as JSON.
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

func (c errorBody) status() int {
	if n, err := strconv.Atoi(c.code); err == nil && n >= 400 && n <= 599 {
		return n
	}
	return 0
}

var (
	tooLong  = regexp.MustCompile(`(?i)context[_ ](length|window|size|limit)|maximum (context|input|prompt|allowed (input )?length)|model token limit|max_new_tokens. must be|too many (input )?tokens|prompt is too long|input is too long|token count.{0,40} exceeds|reduce the length of the messages`)
	filtered = regexp.MustCompile(`(?i)content[_ ](filter|policy|management)|ResponsibleAIPolicyViolation|data_inspection_failed|flagged as`)
	noModel  = regexp.MustCompile(`(?i)\bmodel\b.{0,100}\b(not found|not exist|does not exist|doesn't exist)|no such model`)
	noTools  = regexp.MustCompile(`(?i)(does not|doesn't|not|no endpoints found that) support \W?(tools?|function)\b|tools?( use| calls?| calling)? (is|are) not supported|enable-auto-tool-choice|tools param requires`)
	noMoney  = regexp.MustCompile(`(?i)insufficient[_ ](quota|balance|credit)|billing_hard_limit|exceeded your current quota`)
)

// kind classifies by certain statuses, codes and types first, then by the message where the status would mislead,
// then by the status, and by the type if there is no status.
func (c errorBody) kind(status int) Kind {
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
