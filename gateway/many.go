package gateway

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// maxFollowed bounds the contexts of a stream.
const maxFollowed = 100

// followContexts streams the events of several contexts.
//
// It has what the streams of the contexts have, and waits for contexts that do not exist. The id of a server-sent event is
// a cursor for all contexts: to reconnect, repeat the URL with `Last-Event-ID`. A `problem` event with a `contextName` and
// a status below 500 ends the events of this context. A stream counts as one for each context. `Accept` must name
// `text/event-stream`; otherwise the response is 406.
func (g *Gateway) followContexts(w http.ResponseWriter, r *http.Request) error {
	if !wantsStream(r) {
		return problem(problemRequest, http.StatusNotAcceptable, "Not acceptable", "Accept must name text/event-stream")
	}
	names := r.URL.Query()["context"]
	cursor, err := cursorOf(r, names)
	if err != nil {
		return err
	}
	if out, ok := w.(*response); ok {
		out.context = strings.Join(names, " ")
	}
	release, err := g.countStreams(r, w, len(names))
	if err != nil {
		return err
	}
	defer release()
	m := merger{gateway: g, request: r, names: names, cursor: cursor, ready: make(chan int, len(names)), wake: make(chan struct{}, 1)}
	for i, name := range names {
		c, err := tenantOf(r).open(name)
		if err != nil {
			return err
		}
		from := ""
		if cursor[i] > 0 {
			from = event.FormatID(name, cursor[i])
		}
		advance, leave, err := g.eventsAfter(r, c, from)
		if err != nil {
			return err
		}
		defer leave()
		m.advances = append(m.advances, advance)
		m.ready <- i
	}
	return g.serveStream(w, r, nil, m.advance)
}

// cursorOf returns the counters of the events after which the stream of each context begins.
func cursorOf(r *http.Request, names []string) ([]int, error) {
	if len(names) == 0 || len(names) > maxFollowed {
		return nil, badRequest("%d contexts (1 to %d parameters named context)", len(names), maxFollowed)
	}
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return nil, badRequest("context %s: named twice", event.Redact(name, 0))
		}
	}
	cursor := make([]int, len(names))
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		counters := strings.Split(last, ".")
		for i := range counters {
			n, err := strconv.Atoi(counters[i])
			if err != nil || n < 0 || len(counters) != len(names) {
				return nil, badRequest("Last-Event-ID %q: not of a stream of these %d contexts", event.Redact(last, 0), len(names))
			}
			cursor[i] = n
		}
		return cursor, nil
	}
	for _, id := range r.URL.Query()["from"] {
		n := event.Counter(id)
		i := slices.IndexFunc(names, func(name string) bool { return n > 0 && id == event.FormatID(name, n) })
		if i < 0 {
			return nil, badRequest("from %q: not an event of the contexts (want an id like %s)", event.Redact(id, 0), event.FormatID(names[0], 1))
		}
		cursor[i] = n
	}
	return cursor, nil
}

// merger writes the events of several contexts to one stream.
type merger struct {
	gateway  *Gateway
	request  *http.Request
	names    []string
	advances []func(context.Context, *stream) (<-chan struct{}, error) // by context
	cursor   []int                                                     // counters of the newest events that were written
	ready    chan int                                                  // contexts that have changed
	wake     chan struct{}
	ended    int // number of contexts
}

// advance is that of [Gateway.serveStream]. The cost of a change does not depend on the number of contexts.
func (m *merger) advance(ctx context.Context, out *stream) (<-chan struct{}, error) {
	out.rename = m.rename
	for range m.names {
		select {
		case i := <-m.ready:
			changed, err := m.advances[i](ctx, out)
			if err != nil {
				if err = m.fail(out, i, err); err != nil {
					return nil, err
				}
				continue
			}
			go func() {
				select {
				case <-changed:
					m.ready <- i
					m.wakeUp()
				case <-ctx.Done():
				}
			}()
		default:
			return m.wake, nil
		}
	}
	m.wakeUp()
	return m.wake, nil
}

func (m *merger) wakeUp() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// fail ends the events of a context. A temporary error ends the stream, so that the viewer reconnects.
func (m *merger) fail(out *stream, i int, err error) error {
	if errors.Is(err, errGone) || m.request.Context().Err() != nil {
		return err
	}
	p := *problemOf(err)
	if p.ContextName = m.names[i]; p.Status >= http.StatusInternalServerError {
		return &p
	}
	if m.ended++; m.ended == len(m.names) {
		return &p
	}
	return out.send(m.gateway.problemFrame(m.request, &p))
}

// rename replaces the id of an event by the cursor after it.
func (m *merger) rename(id string) string {
	name, _, _ := strings.Cut(id, ":")
	m.cursor[slices.Index(m.names, name)] = event.Counter(id)
	var b strings.Builder
	for i, n := range m.cursor {
		if i > 0 {
			b.WriteByte('.')
		}
		b.WriteString(strconv.Itoa(n))
	}
	return b.String()
}
