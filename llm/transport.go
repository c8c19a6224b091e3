package llm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
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
//   - Zeros are omitted, such as a temperature of 0:
//     https://github.com/sashabaranov/go-openai/issues/9. Fields of a provider cannot be added.
//     Parameters for models with reasoning are rejected by rules that newer models do not have.
//     Unnecessary once parameters can be any JSON. See withBody.
//   - Each request encodes all messages again; there is no upstream issue. Unnecessary once a
//     request accepts encoded messages. See withBody.

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
	state, _ := req.Context().Value(stateKey{}).(*stateReader)
	resp.Body = newEventBody(resp, state)
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

// noMessages is how go-openai encodes a request without messages. It only matches the field.
var noMessages = []byte(`"messages":null`)

// bodyKey is the context key of the parts that a request adds to its body.
type bodyKey struct{}

type bodyParts struct {
	parameters []byte   // a JSON object
	messages   [][]byte // JSON in pieces
}

// withBody attaches parameters, as a JSON object, and messages, as JSON in pieces, to a go-openai
// request without them.
func withBody(ctx context.Context, parameters []byte, messages [][]byte) context.Context {
	return context.WithValue(ctx, bodyKey{}, bodyParts{parameters, messages})
}

// stateKey is the context key of the [stateReader] of a request.
type stateKey struct{}

// writeBody inserts the parameters and the messages into the body of a request.
func writeBody(req *http.Request) error {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return err
	}
	before, after, found := bytes.Cut(body, noMessages)
	parts, given := req.Context().Value(bodyKey{}).(bodyParts)
	if !found || !given {
		return errors.New("encode request: go-openai no longer writes \"messages\":null without messages")
	}
	if fields := bytes.TrimSuffix(parts.parameters, []byte("}")); len(fields) > len("{") {
		before = slices.Concat(fields, []byte(","), bytes.TrimPrefix(before, []byte("{")))
	}
	pieces := slices.Concat([][]byte{before, []byte(`"messages":[`)}, parts.messages, [][]byte{[]byte("]"), after})
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
