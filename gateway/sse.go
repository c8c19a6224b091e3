package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// frame is a server-sent event
// (https://html.spec.whatwg.org/multipage/server-sent-events.html). Without an id
// it does not move Last-Event-ID, without a kind it is a "message". The data is JSON
// on one line.
func frame(id, kind string, data []byte) []byte {
	var b bytes.Buffer
	for _, field := range [...]struct{ name, value string }{{"id", id}, {"event", kind}} {
		if field.value != "" {
			fmt.Fprintf(&b, "%s: %s\n", field.name, field.value)
		}
	}
	b.WriteString("data: ")
	b.Write(data)
	b.WriteString("\n\n")
	return b.Bytes()
}

// stream is what one viewer is sent.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	begun   bool
}

// begin sends the header. It is too late for a status then.
func (s *stream) begin() error {
	if s.begun {
		return nil
	}
	s.begun = true
	header := s.w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no") // of proxies that hold back what they pass on
	s.w.WriteHeader(http.StatusOK)
	if err := s.control.Flush(); err != nil {
		return fmt.Errorf("%w: %w", errGone, err)
	}
	return nil
}

// errGone: a viewer takes nothing any more.
var errGone = errors.New("the viewer is gone")

// send writes frames and sees to it that they are on their way.
func (s *stream) send(frames ...[]byte) error {
	if err := s.begin(); err != nil {
		return err
	}
	for _, f := range frames {
		if err := s.write(f); err != nil {
			return err
		}
	}
	if err := s.control.Flush(); err != nil {
		return fmt.Errorf("%w: %w", errGone, err)
	}
	return nil
}

// write writes a frame. It waits for the viewer, who is given up when nothing is
// taken for too long.
func (s *stream) write(frame []byte) error {
	if err := s.begin(); err != nil {
		return err
	}
	if _, err := s.w.Write(frame); err != nil {
		return fmt.Errorf("%w: %w", errGone, err)
	}
	return nil
}

// retryWithin spreads the viewers who come back when a gateway ends.
const retryWithin = 3 * time.Second

// serveStream lets a viewer follow a room. advance sends what is new for the viewer
// and returns what is closed when there is more. It ends with the viewer, the room,
// or the gateway.
func (g *Gateway) serveStream(w http.ResponseWriter, r *http.Request, advance func(context.Context, *stream) (<-chan struct{}, error)) error {
	w.Header().Set("Vary", "Accept")
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(g.closing, cancel)()
	out := &stream{w: w, control: http.NewResponseController(w)}
	alive := time.NewTicker(g.options.KeepAlive)
	defer alive.Stop()
	for {
		more, err := advance(ctx, out)
		if err == nil {
			err = g.awaitMore(ctx, out, more, alive.C)
		}
		switch {
		case err == nil:
		case g.closing.Err() != nil && r.Context().Err() == nil:
			retry := retryWithin/3 + rand.N(retryWithin*2/3)
			_ = out.send(fmt.Appendf(nil, ": the gateway ends\nretry: %d\n\n", retry.Milliseconds()))
			return nil
		case !out.begun:
			return err
		case ctx.Err() != nil, errors.Is(err, errGone):
			return nil
		default:
			p := *problemOf(err)
			p.RequestID = requestID(r)
			g.options.Log.Warn("a stream ended", "request_id", p.RequestID, "error", event.Redact(err.Error(), 0))
			data, _ := json.Marshal(p) // it has JSON
			_ = out.send(frame("", "problem", data))
			return nil
		}
	}
}

// awaitMore returns nil when there is more, and says to the viewer meanwhile that
// the stream is alive.
func (g *Gateway) awaitMore(ctx context.Context, out *stream, more <-chan struct{}, alive <-chan time.Time) error {
	for {
		select {
		case <-more:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-alive:
			if err := out.send([]byte(": alive\n\n")); err != nil {
				return err
			}
		}
	}
}
