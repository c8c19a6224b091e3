package llm

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
)

// chunkReader reads the chunks of a response, and skips events that are not JSON.
type chunkReader struct {
	events   *eventReader
	resp     *http.Response
	hasChunk bool
	skipped  int    // events
	excerpt  []byte // of them
}

// next returns an [*errorResponse] at an error of the server, and at the end of a body without a chunk.
func (r *chunkReader) next() (chunk, error) {
	for {
		event, err := r.events.next()
		switch {
		case errors.Is(err, io.EOF) && !r.hasChunk && (r.skipped > 0 || !r.events.isDone):
			return chunk{}, &errorResponse{
				status: r.resp.StatusCode, header: r.resp.Header, body: append(r.excerpt, r.events.other...), isNotStream: true,
			}
		case err != nil:
			return chunk{}, err
		case event.isError:
			return chunk{}, r.failure(event.data)
		case event.json.isObject() || event.json.isArray():
			c := decode(event.json)
			if c.failure != nil {
				return chunk{}, r.failure(c.failure)
			}
			if len(c.choices) > 0 || r.hasChunk || !r.events.isBare {
				r.hasChunk = true
				return c, nil
			}
		}
		r.skipped++
		if room := maxErrorBody - len(r.excerpt); room > 0 {
			r.excerpt = append(append(r.excerpt, event.data[:min(room, len(event.data))]...), '\n')
		}
	}
}

func (r *chunkReader) failure(body []byte) error {
	return &errorResponse{status: r.resp.StatusCode, header: r.resp.Header, body: body, isError: true}
}

// report adds the quirks of the stream, and logs them once.
func (r *chunkReader) report(ctx context.Context, t *Target, quirks *quirkSet) {
	if r.events.isBare && r.hasChunk {
		quirks.add(quirkNotStreamed)
	}
	if r.skipped == 0 || !r.hasChunk {
		return
	}
	quirks.add(quirkNotJSON)
	attributes := []slog.Attr{slog.String("provider", t.ProviderID), slog.Int("events", r.skipped)}
	if t.isConfigured {
		attributes = append(attributes, slog.String("text", t.clean(string(r.excerpt), maxMessage)))
	}
	t.logger.LogAttrs(ctx, slog.LevelWarn, "skipped events of a response that are not JSON", attributes...)
}

func (r *chunkReader) close() { r.events.close() }
