package llm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/seed-9ed7edd4/chronicle/internal/tracing"
)

const maxErrorBody = 64 << 10 // bytes

// This file works around limits of go-openai 1.43 (and eventbody.go around its stream reader):
//
//   - doer: errors lack the response headers, such as Retry-After, and the error objects of some
//     servers: https://github.com/sashabaranov/go-openai/issues/452. Unnecessary once its errors
//     have both.
//   - withBody: zeros (such as a temperature of 0) are omitted; fields cannot be added; and outdated
//     rules reject parameters of reasoning models:
//     https://github.com/sashabaranov/go-openai/issues/9. Unnecessary once parameters can be any JSON.
//   - withBody: each request encodes all messages again; there is no upstream issue. Unnecessary
//     once a request accepts encoded messages.

// doer is the HTTP client for go-openai. go-openai returns the errors of doer unchanged.
type doer struct{ client *http.Client }

// Do returns the response if its status is a success, and otherwise an [*errorResponse]; without a response, a
// [*connectionError].
func (d doer) Do(req *http.Request) (*http.Response, error) {
	if err := writeBody(req); err != nil {
		return nil, err
	}
	tracing.Inject(req.Context(), req.Header)
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

// errorResponse is an error status, an error object in a stream, or no event stream at all.
type errorResponse struct {
	status      int
	header      http.Header
	body        []byte
	isNotStream bool // successful, but without any event
}

func (r *errorResponse) Error() string { return fmt.Sprintf("response with status %d", r.status) }

// connectionError contains the URL and must not leave the package.
type connectionError struct{ err error }

func (e *connectionError) Error() string { return e.err.Error() }
func (e *connectionError) Unwrap() error { return e.err }

// noMessages is how go-openai encodes a request without messages. It cannot match
// inside a string, where quotes are escaped.
var noMessages = []byte(`"messages":null`)

type bodyKey struct{}

type bodyParts struct {
	parameters []byte   // a JSON object
	messages   [][]byte // JSON in pieces
}

// withBody adds parameters and messages to a go-openai request without them.
func withBody(ctx context.Context, parameters []byte, messages [][]byte) context.Context {
	return context.WithValue(ctx, bodyKey{}, bodyParts{parameters, messages})
}

type stateKey struct{} // of the [stateReader] of a request

func writeBody(req *http.Request) error {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return err
	}
	before, after, found := bytes.Cut(body, noMessages)
	parts, given := req.Context().Value(bodyKey{}).(bodyParts)
	if !found || !given {
		return errors.New("encode request: go-openai no longer writes \"messages\":null for a request that has none")
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
