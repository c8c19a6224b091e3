package llm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
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
		e.Kind, e.Message = KindTimeout, t.clean(err.Error(), maxMessage)
	case errors.As(err, &unreached):
		e.Kind = KindConnection
		e.Message = t.clean(err.Error(), maxMessage)
		if errors.Is(err, io.EOF) {
			e.Message = "the connection to " + t.clean(t.BaseURL, maxAdvice) + " was closed before an answer came"
		}
	default:
		e.Kind = KindTruncated
		e.Message = "the answer stopped in the middle: " + t.clean(err.Error(), maxMessage)
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

func (t *Target) failRefused(r *refusal, e *Error) {
	said := readComplaint(r.body)
	e.Status = r.status
	if e.Status < 300 {
		e.Status = said.status()
	}
	e.RetryAfter = RetryAfter(r.header, time.Now())
	e.Kind = said.kind(e.Status)
	if r.foreign && !said.isError {
		e.Kind = KindTruncated
		said.message = fmt.Sprintf("the answer is no event stream but %s: %s",
			firstOf(r.header.Get("Content-Type"), "of no type"), firstOf(said.message, "nothing"))
	}
	if said.message == "" {
		said.message = firstOf(said.code, said.typ, http.StatusText(e.Status), "no reason given")
	}
	e.Message = t.clean(said.message, maxMessage)
	if advice := t.advice(e, r); advice != "" {
		e.Message += " (" + t.clean(advice, maxAdvice) + ")"
	}
}

// advice is what helps to mend the more common mistakes.
func (t *Target) advice(e *Error, r *refusal) string {
	switch {
	case e.Status >= 300 && e.Status < 400:
		return fmt.Sprintf("%s redirects to %s, which is not followed: set that as baseUrl if it is right",
			t.BaseURL, firstOf(r.header.Get("Location"), "nowhere"))
	case e.Kind == KindUnauthorized && t.keyRef == "":
		return "no key was sent: the context names no apiKeyRef, and no default key belongs to " + t.BaseURL
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

// readComplaint reads the body of a refusal. A body that is no JSON is the
// message itself.
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
