package llm

import (
	"errors"
	"io"
	"net/http"
)

// chunkReader reads the chunks of a response, and skips events that are none.
type chunkReader struct {
	events  *eventReader
	resp    *http.Response
	isBegun bool // there was an event with JSON
}

func newChunkReader(resp *http.Response) *chunkReader {
	return &chunkReader{events: newEventReader(resp.Body), resp: resp}
}

// next returns an [*errorResponse] at an error of the server, and at the end of a body without any JSON.
func (r *chunkReader) next() (chunk, error) {
	for {
		event, err := r.events.next()
		switch {
		case errors.Is(err, io.EOF) && !r.isBegun && !r.events.isDone:
			return chunk{}, &errorResponse{status: r.resp.StatusCode, header: r.resp.Header, body: r.events.other, isNotStream: true}
		case err != nil:
			return chunk{}, err
		case event.isError:
			return chunk{}, r.failure(event.data)
		case event.json == nil:
			continue
		}
		r.isBegun = true
		c := decode(event.json)
		if c.failure != nil {
			return chunk{}, r.failure(c.failure)
		}
		return c, nil
	}
}

func (r *chunkReader) failure(body []byte) error {
	return &errorResponse{status: r.resp.StatusCode, header: r.resp.Header, body: body}
}

func (r *chunkReader) close() { r.events.close() }
