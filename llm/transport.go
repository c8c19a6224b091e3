package llm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
)

// maxErrorBody is the maximum length of an error response that is read, in bytes.
const maxErrorBody = 64 << 10

// This file works around limits of go-openai 1.43; eventbody.go works around those of its stream
// reader:
//
//   - Errors lack the response headers, including Retry-After, and the error objects of some
//     servers: https://github.com/sashabaranov/go-openai/issues/452. Unnecessary once its errors
//     have both. See doer.
//   - A temperature of 0 is omitted: https://github.com/sashabaranov/go-openai/issues/9.
//     Unnecessary once the field is a pointer. See nonzero.
//   - Each request encodes all messages again; there is no upstream issue. Unnecessary once a
//     request accepts encoded messages. See withMessages.

// doer is the HTTP client for go-openai. It turns error responses into errors, which go-openai
// returns unchanged.
type doer struct{ client *http.Client }

// Do returns the response if it may be an event stream, and else an [*errorResponse].
func (d doer) Do(req *http.Request) (*http.Response, error) {
	if err := writeBody(req); err != nil {
		return nil, err
	}
	resp, err := d.client.Do(req)
	if err != nil {
		return nil, &connectionError{err}
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		defer resp.Body.Close()
		// The part read before an error is more useful than the error.
		body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
		return nil, &errorResponse{status: resp.StatusCode, header: resp.Header, body: body}
	}
	resp.Body = newEventBody(resp)
	return resp, nil
}

// errorResponse is an unsuccessful response: an error status, an error object in a stream, or a
// body that is no event stream.
type errorResponse struct {
	status int
	header http.Header
	body   []byte
	// isNotStream marks a successful response without any event.
	isNotStream bool
}

func (r *errorResponse) Error() string { return fmt.Sprintf("response with status %d", r.status) }

// connectionError is a failure before the response. It contains the URL and must not leave the
// package.
type connectionError struct{ err error }

func (e *connectionError) Error() string { return e.err.Error() }
func (e *connectionError) Unwrap() error { return e.err }

// nonzero returns a temperature that go-openai encodes: instead of 0, the smallest number, which
// writeBody replaces by 0. Servers that divide by the temperature do not treat it as 0.
func nonzero(temperature float64) float32 {
	return max(float32(temperature), math.SmallestNonzeroFloat32)
}

// Quotes inside a JSON string are escaped, so smallestTemperature only matches the field.
var (
	smallestTemperature = []byte(`"temperature":1e-45`)
	zeroTemperature     = []byte(`"temperature":0`)
)

// noMessages is how go-openai encodes a request without messages. It only matches the field.
var noMessages = []byte(`"messages":null`)

// messagesKey is the context key of the messages of a request.
type messagesKey struct{}

// withMessages attaches messages, as JSON in pieces, to a go-openai request without messages.
func withMessages(ctx context.Context, json [][]byte) context.Context {
	return context.WithValue(ctx, messagesKey{}, json)
}

// writeBody inserts the messages into the body of a request, and replaces the smallest
// temperature by 0.
func writeBody(req *http.Request) error {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return err
	}
	body = bytes.Replace(body, smallestTemperature, zeroTemperature, 1)
	before, after, found := bytes.Cut(body, noMessages)
	messages, given := req.Context().Value(messagesKey{}).([][]byte)
	if !found || !given {
		return errors.New("encode request: go-openai no longer writes \"messages\":null without messages")
	}
	pieces := slices.Concat([][]byte{before, []byte(`"messages":[`)}, messages, [][]byte{[]byte("]"), after})
	req.ContentLength = 0
	for _, piece := range pieces {
		req.ContentLength += int64(len(piece))
	}
	req.GetBody = func() (io.ReadCloser, error) {
		readers := make([]io.Reader, len(pieces))
		for i, piece := range pieces {
			readers[i] = bytes.NewReader(piece)
		}
		return io.NopCloser(io.MultiReader(readers...)), nil
	}
	req.Body, err = req.GetBody()
	return err
}
