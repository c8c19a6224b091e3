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

// maxRefusal is how much of a refusal is read, in bytes.
const maxRefusal = 64 << 10

// doer stands between go-openai and the HTTP client. go-openai keeps the
// status of a refusal but not its headers, where Retry-After is, and loses the
// error objects of some servers; so refusals are taken out here, as errors,
// which go-openai passes on as they are.
type doer struct{ client *http.Client }

// Do sends a request and returns the answer if it may be an event stream, and
// a [*refusal] for anything else that came back.
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
		// What was read until an error says more than the error.
		body, _ := io.ReadAll(io.LimitReader(resp.Body, maxRefusal))
		return nil, &refusal{status: resp.StatusCode, header: resp.Header, body: body}
	}
	resp.Body = newEventBody(resp)
	return resp, nil
}

// refusal is an answer of a provider that is none: a status that is no
// success, an error object in a stream, or a body that is no event stream.
type refusal struct {
	status int
	header http.Header
	body   []byte
	// foreign marks the body of a success that holds no event at all.
	foreign bool
}

func (r *refusal) Error() string { return fmt.Sprintf("refused with status %d", r.status) }

// connectionError is a failure before the answer began. Its text and its chain
// hold the URL and stay inside the package.
type connectionError struct{ err error }

func (e *connectionError) Error() string { return e.err.Error() }
func (e *connectionError) Unwrap() error { return e.err }

// smallestTemperature is math.SmallestNonzeroFloat32 as it stands in a request:
// what go-openai sends for a temperature of 0, which it would leave out.
// Servers that divide by it do not take it for 0. Inside a JSON string the
// quotes would be escaped, so this can be nothing but the field.
var (
	smallestTemperature = []byte(`"temperature":1e-45`)
	zeroTemperature     = []byte(`"temperature":0`)
)

// noMessages is how go-openai writes the messages of a request that has none. By
// the same reasoning it can be nothing but the field.
var noMessages = []byte(`"messages":null`)

// messagesKey is where the context of a request has its messages.
type messagesKey struct{}

// withMessages gives the messages of a request, as JSON in pieces, to a request
// that go-openai is to make without any: it would encode all of them each time.
func withMessages(ctx context.Context, json [][]byte) context.Context {
	return context.WithValue(ctx, messagesKey{}, json)
}

// writeBody puts the messages into the body of a request, and makes a true 0 of
// the smallest temperature.
func writeBody(req *http.Request) error {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return err
	}
	body = bytes.Replace(body, smallestTemperature, zeroTemperature, 1)
	before, after, found := bytes.Cut(body, noMessages)
	messages, given := req.Context().Value(messagesKey{}).([][]byte)
	if !found || !given {
		return errors.New("go-openai writes a request in a way that leaves no place for its messages")
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
