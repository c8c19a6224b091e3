package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// frame encodes a server-sent event
// (https://html.spec.whatwg.org/multipage/server-sent-events.html). Without an id, the client keeps
// its Last-Event-ID; without a kind, the type of the event is "message". Data is one line.
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

type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	isOpen  bool // the header is sent
	// rename replaces the ids of events; nil: they stay.
	rename func(id string) string
}

// Errors after begin cannot change the status.
func (s *stream) begin() error {
	if s.isOpen {
		return nil
	}
	s.isOpen = true
	header := s.w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-store, no-transform") // a proxy that compresses holds the beginning of a stream
	header.Set("X-Accel-Buffering", "no")                 // disables buffering in proxies
	s.w.WriteHeader(http.StatusOK)
	return s.send(streamBegins) // some proxies hold the header until the first byte of the body
}

var streamBegins = []byte(": the stream begins\n\n")

var (
	errGone = errors.New("the viewer disconnected")
	errEnd  = errors.New("the stream is complete")
)

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

// write blocks while the viewer is slow, up to writeTimeout.
func (s *stream) write(frame []byte) error {
	if err := s.begin(); err != nil {
		return err
	}
	if rest, ok := bytes.CutPrefix(frame, []byte("id: ")); ok && s.rename != nil {
		id, data, _ := bytes.Cut(rest, []byte("\n"))
		frame = slices.Concat([]byte("id: "+s.rename(string(id))+"\n"), data)
	}
	if _, err := s.w.Write(frame); err != nil {
		return fmt.Errorf("%w: %w", errGone, err)
	}
	return nil
}

func (s *stream) writeDocument(ctx context.Context, d *document, limit *byteLimit) error {
	if err := s.write(bytes.TrimSuffix(frame(d.id, "document", nil), []byte("\n\n"))); err != nil {
		return err
	}
	if err := d.writeTo(ctx, limit, s.write); err != nil {
		return err
	}
	return s.write([]byte("\n\n"))
}

const retryWithin = 3 * time.Second // spreads reconnections after a shutdown

// serveStream ends when the viewer disconnects, the room ends, or the gateway shuts down. Advance
// sends the changes and returns a channel that is closed when there are further ones; errEnd ends the stream. Fail encodes
// an error; nil: as a problem, or on shutdown as a comment.
func (g *Gateway) serveStream(w http.ResponseWriter, r *http.Request, fail func(error) []byte, advance func(context.Context, *stream) (<-chan struct{}, error)) error {
	w.Header().Set("Vary", "Accept")
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(g.closing, cancel)()
	out := &stream{w: w, control: http.NewResponseController(w)}
	keepAlive := time.NewTicker(g.options.KeepAlive)
	defer keepAlive.Stop()
	for {
		changed, err := advance(ctx, out)
		if err == nil {
			err = g.awaitChange(ctx, out, changed, keepAlive.C, func() error { return g.recheck(w, r) })
		}
		if errors.Is(err, errEnd) {
			return nil
		}
		isClosing := g.closing.Err() != nil && r.Context().Err() == nil
		if err != nil && isClosing && fail != nil {
			err = errClosing
		}
		switch {
		case err == nil:
		case isClosing && fail == nil:
			retry := retryWithin/3 + rand.N(retryWithin*2/3)
			_ = out.send(fmt.Appendf(nil, ": the gateway is shutting down\nretry: %d\n\n", retry.Milliseconds()))
			return nil
		case !out.isOpen:
			return err
		case r.Context().Err() != nil, errors.Is(err, errGone):
			return nil
		case fail != nil:
			g.options.Log.Warn("stream failed", "request_id", requestID(r), "path", r.URL.Path, "error", event.Redact(err.Error(), 0))
			_ = out.send(fail(err))
			return nil
		default:
			_ = out.send(g.problemFrame(r, err))
			return nil
		}
	}
}

func (g *Gateway) problemFrame(r *http.Request, err error) []byte {
	p := *problemOf(err)
	p.RequestID = requestID(r)
	g.options.Log.Warn("stream failed", "request_id", p.RequestID, "path", r.URL.Path, "error", event.Redact(err.Error(), 0))
	return frame("", "problem", encode(p))
}

func (g *Gateway) awaitChange(ctx context.Context, out *stream, changed <-chan struct{}, keepAlive <-chan time.Time, recheck func() error) error {
	for {
		select {
		case <-changed:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-keepAlive:
			if err := recheck(); err != nil {
				return err
			}
			if err := out.send([]byte(": keep-alive\n\n")); err != nil {
				return err
			}
		}
	}
}
