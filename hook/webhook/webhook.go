// Package webhook makes hooks from HTTPS endpoints, for worker --hooks.
//
// A call is a POST request, signed with HMAC-SHA256 as in the Standard Webhooks specification:
// https://www.standardwebhooks.com. Its body is a [Message]. To let the attempt pass, an endpoint
// answers with status 204, or with status 200 and an empty body. Otherwise it answers with status
// 200 and a [hook.Verdict] as JSON:
//
//	{"refuse": "off topic"}
//	{"reason": "a name", "change": {"messages": [{"eventId": "demo:0002", "content": "I am [name]"}]}}
//	{"reason": "a name", "change": {"text": "I am [name]"}}
//
// Endpoints with the stage event receive [EventMessage] instead, one at a time per run of a context;
// the last one of a run that continued as new, was reset or terminated may overlap with the first one
// of the next run. Any status 2xx accepts the events; the body of the response is ignored. After
// any other status, including 410, the same events are sent again later; Retry-After is honoured up
// to [hook.MaxRetryAfter]. If the file selects events or contexts, the others are not sent, but the cursor
// moves past them.
//
// Guarantees:
//   - Requests go to the configured URL only: redirects are not followed.
//   - The body contains no key of a provider, no bytes of attachments and no provider state.
//   - Errors contain neither the secret nor the response body, and of the URL at most the host.
//   - The error of a redirect, a status other than 429 and 5xx, or an invalid body wraps
//     [hook.ErrBroken], except in the stage event.
//   - Retries of a call have the same webhook-id; each other call has its own. Repeated deliveries of
//     the same events by the same run have the same webhook-id and body, also from other workers.
package webhook

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/hook"
	"github.com/seed-9ed7edd4/chronicle/internal/tracing"
)

const (
	maxResponseBytes = 1 << 20
	maxRest          = 64 << 10
	maxFinish        = 100 * time.Millisecond
	firstDelay       = 100 * time.Millisecond // before the first retry; doubles
)

// Message is the body of a call.
type Message struct {
	Type      event.HookStage `json:"type"` // before, beside or after
	Timestamp time.Time       `json:"timestamp"`
	Data      Data            `json:"data"`
}

// Data is the request of an attempt and, after the answer, its response.
type Data struct {
	hook.Request
	Response *hook.Response `json:"response,omitempty"` // set if the type of the message is after
}

type endpoint struct {
	name    string
	url     string
	retries int
	signer  *standardwebhooks.Webhook
	client  *http.Client
	// In the stage event: the tags of the events, and patterns of contexts; empty: all.
	tags, contexts []string
}

func newClient() *http.Client {
	return &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

func (e endpoint) before(stage event.HookStage) func(context.Context, hook.Request) (hook.Verdict, error) {
	return func(ctx context.Context, r hook.Request) (hook.Verdict, error) {
		return e.call(ctx, Message{Type: stage, Data: Data{Request: r}})
	}
}

func (e endpoint) after(ctx context.Context, r hook.Request, answer hook.Response) (hook.Verdict, error) {
	return e.call(ctx, Message{Type: event.HookAfter, Data: Data{Request: r, Response: &answer}})
}

func (e endpoint) call(ctx context.Context, m Message) (verdict hook.Verdict, err error) {
	m.Timestamp = time.Now().UTC()
	m.Data.Messages = slices.Clone(m.Data.Messages)
	for i := range m.Data.Messages {
		message := &m.Data.Messages[i]
		message.ProviderState = nil
		message.Attachments = slices.Clone(message.Attachments)
		for k := range message.Attachments {
			message.Attachments[k].Source = withoutBytes(message.Attachments[k].Source)
		}
	}
	body, err := json.Marshal(m)
	if err != nil {
		return verdict, err
	}
	isTemporary, err := e.send(ctx, "msg_"+rand.Text(), body, func(response *http.Response) (isTemporary bool, err error) {
		verdict, isTemporary, err = readVerdict(response)
		return isTemporary, err
	})
	if err != nil && !isTemporary {
		err = fmt.Errorf("%w: %w", hook.ErrBroken, err)
	}
	return verdict, err
}

func withoutBytes(source event.Source) event.Source {
	if source.Data = nil; source.Type == event.SourceURL {
		source.URL = source.String() // without the data of a data URL
	}
	return source
}

// send repeats a call after temporary errors.
func (e endpoint) send(ctx context.Context, id string, body []byte, read func(*http.Response) (isTemporary bool, err error)) (isTemporary bool, err error) {
	delay := firstDelay
	for n := 0; ; n++ {
		isTemporary, err = e.post(ctx, id, body, read)
		if err == nil || !isTemporary || n == e.retries {
			return isTemporary, err
		}
		select {
		case <-time.After(delay):
			delay *= 2
		case <-ctx.Done():
			return isTemporary, err
		}
	}
}

func (e endpoint) post(ctx context.Context, id string, body []byte, read func(*http.Response) (isTemporary bool, err error)) (isTemporary bool, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(body))
	if err != nil {
		return false, errors.New("invalid URL")
	}
	now := time.Now()
	signature, err := e.signer.Sign(id, now, body)
	if err != nil {
		return false, errors.New("cannot sign the request")
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set(standardwebhooks.HeaderWebhookID, id)
	request.Header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	request.Header.Set(standardwebhooks.HeaderWebhookSignature, signature)
	tracing.Inject(ctx, request.Header)
	response, err := e.client.Do(request)
	if err != nil {
		var withURL *url.Error
		if errors.As(err, &withURL) {
			err = withURL.Err
		}
		return true, fmt.Errorf("connection failed: %w", err)
	}
	defer finish(response)
	return read(response)
}

// finish reads the rest of a short response, so that the next call can use the connection.
func finish(response *http.Response) {
	if n := response.ContentLength; 0 < n && n <= maxRest {
		timer := time.AfterFunc(maxFinish, func() { _ = response.Body.Close() })
		defer timer.Stop()
		_, _ = io.Copy(io.Discard, response.Body)
	}
	_ = response.Body.Close()
}

func isTemporaryStatus(code int) bool { return code == http.StatusTooManyRequests || code >= 500 }

func readVerdict(response *http.Response) (verdict hook.Verdict, isTemporary bool, err error) {
	switch {
	case response.StatusCode == http.StatusNoContent:
		return verdict, false, nil
	case response.StatusCode != http.StatusOK:
		return verdict, isTemporaryStatus(response.StatusCode), fmt.Errorf("status %d (want 200 or 204)", response.StatusCode)
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, maxResponseBytes+1))
	if err != nil {
		return verdict, true, fmt.Errorf("read the response: %w", err)
	}
	if len(data) > maxResponseBytes {
		return verdict, false, fmt.Errorf("the response exceeds %d bytes", maxResponseBytes)
	}
	if data = bytes.TrimSpace(data); len(data) == 0 {
		return verdict, false, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if decoder.Decode(&verdict) != nil || decoder.More() {
		return hook.Verdict{}, false, errors.New(`the response is not a verdict (want JSON like {"refuse":"…"}, {"change":{…}} or nothing)`)
	}
	return verdict, false, nil
}
