package llm

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/retryafter"
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

// failResponse quotes the response only if it is an error object or a plain text of a preset or a configured provider.
// The sender of an event may name a server that only the worker can reach, and must not read the response through the
// log.
func (t *Target) failResponse(r *errorResponse, e *Error) {
	body := parseErrorBody(r.body)
	body.isError = body.isError || r.isError
	e.Status = r.status
	if e.Status < 300 {
		e.Status = body.status
	}
	e.Kind = body.kind(e.Status)
	e.RetryAfter = r.retryAfter(e.Kind, body)
	if e.Kind == KindContextTooLong {
		stated := limitIn(body.message + "\n" + string(r.body)) // llama.cpp states the numbers in other fields
		e.Window, e.InputTokens = stated.window, stated.input
	}
	e.refusal = t.refusalIn(body)
	switch {
	case r.isNotStream && len(trimSpace(r.body)) == 0:
		e.Kind, e.Message = KindTruncated, "the answer is empty"
	case r.isNotStream && !body.isError:
		e.Kind, e.Message = KindTruncated, "the response has no chunk of an answer (media type: "+contentKind(r.header)+")"
		if t.isConfigured && body.isText {
			e.Message += ": " + body.message
		}
	case t.isConfigured && (body.isError || body.isText):
		e.Message = cmp.Or(body.message, body.code, body.typ, http.StatusText(e.Status), "the server gives no reason")
	case t.isConfigured:
		e.Message = cmp.Or(http.StatusText(e.Status), "an error") + ", and the response has no message of a model server"
	default:
		e.Message = cmp.Or(http.StatusText(e.Status), "an error") + "; the response is not shown, since the worker's operator configured no provider for " + t.BaseURL
	}
	e.Message = t.clean(e.Message, maxMessage)
	if advice := t.advice(e); advice != "" {
		e.Message += " (" + t.clean(advice, maxAdvice) + ")"
	}
}

// retryAfter returns the delay that a server requests in the headers or the body.
func (r *errorResponse) retryAfter(kind Kind, body errorBody) time.Duration {
	now := time.Now()
	if wait := retryafter.Of(r.header, now); wait > 0 {
		return wait
	}
	if wait := retryafter.InText(string(r.body)); wait > 0 {
		return wait
	}
	if kind != KindRateLimited {
		return 0
	}
	return cmp.Or(retryafter.OfReset(body.headers, now), retryafter.OfReset(r.header, now))
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
	switch {
	case errors.Is(err, errTooLarge):
		return errTooLarge.Error()
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
	case e.Status == http.StatusForbidden && e.Kind == KindUnauthorized:
		return "check the permissions of the key in " + t.keyRef
	case e.Kind == KindUnauthorized:
		return "the key in " + t.keyRef + " was rejected"
	case e.Kind == KindNotFound:
		return fmt.Sprintf("model %q at %s", t.Model, t.BaseURL)
	}
	return ""
}

// clean removes secrets from a text and makes it a single line. A longer text is cut after max bytes, and its length
// is appended.
func (t *Target) clean(text string, max int) string {
	text = strings.ToValidUTF8(text, "�")
	if key := t.key(); key != "" {
		text = strings.ReplaceAll(text, key, event.Removed)
	}
	text = strings.Join(strings.Fields(text), " ")
	return event.Redact(text, max)
}

type errorBody struct {
	code    string // digits if it is a number
	typ     string
	message string
	param   string      // that the error names
	status  int         // an HTTP status; 0: none
	headers http.Header // of the provider behind OpenRouter
	isError bool        // the body was an error object
	isText  bool        // the body was neither JSON nor HTML
}

// The names of the fields of an error, the preferred ones first. The last ones are those of MiniMax, Baidu and FastAPI.
var (
	codeFields    = []string{"code", "error_code", "status_code"}
	typeFields    = []string{"type", "status", "__type"}
	messageFields = []string{"message", "detail", "error", "msg", "error_msg", "error_message", "status_msg", "error_description", "errors"}
	statusFields  = []string{"code", "status_code", "status", "http_code", "http_status"}
)

// parseErrorBody also accepts a body that is not JSON. Such a body only serves to classify the error, unless it is a
// plain text.
func parseErrorBody(data []byte) errorBody {
	body := valueOf(data)
	if body == nil {
		text := trimSpace(data)
		return errorBody{message: string(text), isText: len(text) > 0 && strings.IndexByte("<{[", text[0]) < 0}
	}
	for element := range body.elements() {
		body = element // Gemini wraps the error object in an array
		break
	}
	if body.isString() {
		return errorBody{message: body.text(), isText: true}
	}
	fields := body
	for _, name := range []string{"error", "base_resp", "response"} { // of all; of MiniMax; of LM Studio
		if inner := body.field(name); inner.isObject() {
			fields = inner
			break
		}
	}
	c := errorBody{
		code: plainField(fields, codeFields), typ: plainField(fields, typeFields), param: plain(fields.field("param")),
		message: cmp.Or(validationErrors(fields.field("detail")), plainField(fields, messageFields)),
	}
	c.isError = c.message != "" || body.field("error") != nil
	for _, name := range statusFields {
		if n := fields.field(name).number(); c.status == 0 && n >= 400 && n <= 599 {
			c.status = n
		}
	}
	// OpenRouter: the error of the provider behind it.
	metadata := fields.field("metadata")
	if raw := plain(metadata.field("raw")); raw != "" {
		c.message += ": " + raw
	}
	c.headers = http.Header{}
	for name, header := range metadata.field("headers").fields() {
		c.headers.Set(string(name), header.text())
	}
	// Azure: the reason of its content filter.
	if code := fields.field("innererror").field("code").text(); code != "" {
		c.typ = code
	}
	return c
}

func plainField(v value, names []string) string {
	for _, name := range names {
		if text := plain(v.field(name)); text != "" {
			return text
		}
	}
	return ""
}

// plain returns the text of a string, "" for an empty value, and any other value as JSON.
func plain(v value) string {
	switch {
	case string(v) == "{}" || string(v) == "[]":
		return ""
	case v.isObject() || v.isArray():
		return repaired(string(v), new(quirkSet))
	}
	return repaired(v.text(), new(quirkSet))
}

var (
	tooLong  = regexp.MustCompile(`(?i)context[_ ](length|window|size|limit)|maximum (context|input|prompt|allowed (input )?length)|model token limit|max_new_tokens. must be|too many (input )?tokens|prompt is too long|input is too long|token count.{0,40} exceeds|reduce the length of the messages`)
	filtered = regexp.MustCompile(`(?i)content[_ ](filter|policy|management)|ResponsibleAIPolicyViolation|data_inspection_failed|flagged as`)
	noModel  = regexp.MustCompile(`(?i)\bmodel\b.{0,100}\b(not found|not exist|does not exist|doesn't exist)|no such model`)
	noTools  = regexp.MustCompile(`(?i)(does not|doesn't|not|no endpoints found that) support \W?(tools?|function)\b|tools?( use| calls?| calling)? (is|are) not supported|enable-auto-tool-choice|tools param requires`)
	noMoney  = regexp.MustCompile(`(?i)insufficient[_ ](quota|balance|credit)|billing_hard_limit|exceeded[_ ](your[_ ])?current[_ ]quota|billing_error`)
	// Groq: what the model wrote is not a tool call, or not in the format of the answer.
	malformed = regexp.MustCompile(`tool_use_failed|output_parse_failed|json_validate_failed`)
)

var kindsByStatus = map[int]Kind{
	403: KindUnauthorized, 404: KindNotFound, 408: KindTimeout, 409: KindServer, 413: KindContextTooLong, 425: KindServer,
}

// kindsByName are the codes and types of errors without a status: of OpenAI, Anthropic, Google, AWS and others.
var kindsByName = []struct {
	kind  Kind
	names *regexp.Regexp
}{
	{KindRateLimited, regexp.MustCompile(`(?i)rate_?limit|too_?many_?requests|RESOURCE_EXHAUSTED|Throttling`)},
	{KindUnauthorized, regexp.MustCompile(`(?i)authentication|UNAUTHENTICATED|permission|invalid_api_key|Access_?Denied|unauthorized|forbidden`)},
	{KindNotFound, regexp.MustCompile(`(?i)not_?found`)},
	{KindTimeout, regexp.MustCompile(`(?i)timeout|DEADLINE_EXCEEDED`)},
	{KindContextTooLong, regexp.MustCompile(`(?i)request_too_large`)},
	{KindBadRequest, regexp.MustCompile(`(?i)invalid_?(request|argument|parameter)|FAILED_PRECONDITION|bad_?request|Validation`)},
}

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
	case malformed.MatchString(names):
		return KindMalformed
	case tooLong.MatchString(names) || tooLong.MatchString(c.message) || strings.Contains(c.typ, "exceed_context"):
		return KindContextTooLong
	case filtered.MatchString(names) || status < 500 && filtered.MatchString(c.message):
		return KindContentFilter
	}
	if strings.Contains(names, "model_not_found") || (status == 400 || status == 500) && noModel.MatchString(c.message) {
		return KindNotFound
	}
	if kind, ok := kindsByStatus[status]; ok {
		return kind
	}
	switch {
	case status >= 500:
		return KindServer
	case status >= 300:
		return KindBadRequest
	}
	for _, known := range kindsByName {
		if known.names.MatchString(names) {
			return known.kind
		}
	}
	return KindServer
}
