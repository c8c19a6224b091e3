package llm

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
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
	if err := writeZeroTemperature(req); err != nil {
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

// writeZeroTemperature makes a true 0 of the smallest temperature.
func writeZeroTemperature(req *http.Request) error {
	if req.Body == nil {
		return nil
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return err
	}
	body = bytes.Replace(body, smallestTemperature, zeroTemperature, 1)
	req.Body = io.NopCloser(bytes.NewReader(body))
	req.ContentLength = int64(len(body))
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	return nil
}
