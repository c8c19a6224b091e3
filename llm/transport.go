package llm

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/seed-9ed7edd4/chronicle/internal/tracing"
)

const maxErrorBody = 64 << 10 // bytes

// post sends a request, whose body is given in pieces. It returns a response with a successful status, and otherwise
// an [*errorResponse]; without a response, a [*connectionError].
func (t *Target) post(ctx context.Context, body [][]byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.BaseURL+"/chat/completions", nil)
	if err != nil {
		return nil, err
	}
	for _, piece := range body {
		req.ContentLength += int64(len(piece))
	}
	req.GetBody = func() (io.ReadCloser, error) {
		readers := make([]io.Reader, len(body))
		for i, piece := range body {
			readers[i] = bytes.NewReader(piece)
		}
		return io.NopCloser(io.MultiReader(readers...)), nil
	}
	req.Body, _ = req.GetBody()
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	if key := t.key(); key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	tracing.Inject(ctx, req.Header)
	resp, err := t.http.Do(req)
	if err != nil {
		return nil, &connectionError{err}
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		defer resp.Body.Close()
		// The part read before an error is more useful than the error.
		body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
		return nil, &errorResponse{status: resp.StatusCode, header: resp.Header, body: body}
	}
	return resp, nil
}

// errorResponse is an error status, an error object in a stream, or no event stream at all.
type errorResponse struct {
	status      int
	header      http.Header
	body        []byte
	isError     bool // an error event, whatever its body
	isNotStream bool // successful, but without any chunk
}

func (r *errorResponse) Error() string { return fmt.Sprintf("response with status %d", r.status) }

// connectionError contains the URL and must not leave the package.
type connectionError struct{ err error }

func (e *connectionError) Error() string { return e.err.Error() }
func (e *connectionError) Unwrap() error { return e.err }

// body returns the JSON of a request in pieces: its messages, and then its parameters, a JSON object that is not empty.
func body(parameters []byte, messages []renderedMessage) [][]byte {
	pieces := [][]byte{[]byte(`{"messages":[`)}
	for i, m := range messages {
		if i > 0 {
			pieces = append(pieces, []byte(","))
		}
		pieces = append(pieces, m.json)
	}
	return append(pieces, []byte("],"), parameters[1:])
}
