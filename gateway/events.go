package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// readEvents reads a page of the log, or streams the log and new events.
//
// The response is 404 if the log lacks the event of `from` or `Last-Event-ID`, for example because the context was reset.
//
// With `Accept: text/event-stream` the response is a stream, which waits for a context that does not exist yet. The id of
// each server-sent event is the id of the recorded event. `TextDeltaEvent`s and `ReasoningDeltaEvent`s are interleaved and
// have no id: append each one to the text or the reasoning of its attempt, or replace both if `reset` is true. The answer
// of a request with tool calls has several attempts, each with an `AssistantMessageEvent`. `ToolProgressEvent`s have no id
// either: each one replaces the progress of its call.
func (g *Gateway) readEvents(w http.ResponseWriter, r *http.Request) error {
	c, err := g.context(r)
	if err != nil {
		return err
	}
	from := r.URL.Query().Get("from")
	if wantsStream(r) {
		from = cmp.Or(r.Header.Get("Last-Event-ID"), from)
	}
	if n := event.Counter(from); from != "" && (n == 0 || from != event.FormatID(c.Name(), n)) {
		return badRequest("from or Last-Event-ID %q: not an event of the context (want an id like %s)", from, event.FormatID(c.Name(), 1))
	}
	if wantsStream(r) {
		return g.streamEvents(w, r, c, from)
	}
	return g.writeEvents(w, r, c, from)
}

type eventPage struct {
	Events []json.RawMessage `json:"events" schema:"items.is=Event"`
	Next   string            `json:"next,omitempty"` // the path of the next page; absent at the end of the log
}

const maxPageBytes = 8 << 20 // approximate maximum of a page of events

func (g *Gateway) writeEvents(w http.ResponseWriter, r *http.Request, c Context, from string) error {
	maxEvents, err := parseLimit(r.URL.Query())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), answerTimeout)
	defer cancel()
	page := eventPage{Events: []json.RawMessage{}}
	held := share{of: g.answers}
	defer held.release()
	size, last := 0, ""
	for e, err := range c.Events(ctx, from) {
		if err != nil {
			return err
		}
		data, err := e.MarshalJSON()
		if err != nil {
			return err
		}
		isFull := len(page.Events) == maxEvents || size > maxPageBytes
		if !isFull {
			err := held.grow(int64(len(data)))
			if isFull = err != nil; isFull && len(page.Events) == 0 {
				return err
			}
		}
		if isFull {
			query := url.Values{"from": {last}}
			if limit := r.URL.Query().Get("limit"); limit != "" {
				query.Set("limit", limit)
			}
			page.Next = g.options.PublicPath + "/contexts/" + c.Name() + "/events?" + query.Encode()
			break
		}
		page.Events = append(page.Events, data)
		size, last = size+len(data), e.ID
	}
	if from != "" && len(page.Events) == 0 {
		if err := findEvent(ctx, c, from); err != nil {
			return err
		}
	}
	w.Header().Set("Vary", "Accept")
	writeJSON(w, http.StatusOK, page)
	return nil
}

// findEvent fails if the log lacks an event.
func findEvent(ctx context.Context, c Context, id string) error {
	for e, err := range c.Events(ctx, event.IDBefore(c.Name(), event.Counter(id))) {
		if err != nil || e.ID == id {
			return err
		}
		break
	}
	return problem(problemNotFound, http.StatusNotFound, "Event not found",
		"from or Last-Event-ID %s: not in the log (after a reset, read the log again from its beginning)", id)
}

func (g *Gateway) streamEvents(w http.ResponseWriter, r *http.Request, c Context, from string) error {
	advance, leave, err := g.eventsAfter(r, c, from)
	if err != nil {
		return err
	}
	defer leave()
	return g.serveStream(w, r, nil, advance)
}

// eventsAfter returns a function that sends what is new of a context, for [Gateway.serveStream], until leave is called.
func (g *Gateway) eventsAfter(r *http.Request, c Context, from string) (
	advance func(context.Context, *stream) (<-chan struct{}, error), leave func(), err error,
) {
	v, leave, err := g.newEventViewer(r, c, from)
	isKnown := from == "" // the log has the event from
	return func(ctx context.Context, out *stream) (<-chan struct{}, error) {
		return v.advance(ctx, func(update *eventUpdate) error {
			if update.isAhead && !isKnown {
				if err := findEvent(ctx, c, from); err != nil {
					return err
				}
			}
			if !update.isReady {
				return nil
			}
			isKnown = true
			before := v.at.deltas
			err := out.send(update.frames()...)
			g.sent(before, update.at.deltas)
			return err
		}, func(ctx context.Context) error { return g.readLog(ctx, c, &v.at, out) })
	}, leave, err
}

// eventViewer reads the events of a context from a position on.
type eventViewer struct {
	room *room
	from int // counter of the event after which it began
	at   eventPosition
}

// newEventViewer starts after the event with the id from; "": at the first one. The room waits for a context that does
// not exist.
func (g *Gateway) newEventViewer(r *http.Request, c Context, from string) (v *eventViewer, leave func(), err error) {
	room, leave, err := tenantOf(r).rooms.enter(c, true)
	if err != nil {
		return nil, nil, err
	}
	n := event.Counter(from)
	return &eventViewer{room, n, eventPosition{last: n, deltas: noDeltas}}, leave, nil
}

// advance sends what is new, and returns a channel that is closed when there is more. Events that the room does not
// buffer any more are read from the log.
func (v *eventViewer) advance(
	ctx context.Context, send func(*eventUpdate) error, readLog func(context.Context) error,
) (changed <-chan struct{}, err error) {
	for {
		update, err := v.room.eventsAfter(v.at)
		if err != nil {
			return nil, err
		}
		if update.isBehind {
			if err := readLog(ctx); err != nil {
				return nil, err
			}
			v.at.last = max(v.at.last, update.at.last)
			continue
		}
		if err := send(&update); err != nil {
			return nil, err
		}
		v.at = update.at
		return update.changed, nil
	}
}

func (g *Gateway) readLog(ctx context.Context, c Context, at *eventPosition, out *stream) error {
	err := readLog(ctx, c, at, func(e event.Event) error {
		data := eventFrame(e)
		held := share{of: g.answers}
		defer held.release()
		if err := held.await(ctx, int64(len(data))); err != nil {
			return err
		}
		return out.write(data)
	})
	if err != nil {
		return err
	}
	return out.send()
}

// readLog passes on the events after a position, which it moves.
func readLog(ctx context.Context, c Context, at *eventPosition, each func(event.Event) error) error {
	from := ""
	if at.last > 0 {
		from = event.FormatID(c.Name(), at.last)
	}
	for e, err := range c.Events(ctx, from) {
		if err == nil {
			err = each(e)
		}
		if err != nil {
			return err
		}
		at.last = event.Counter(e.ID)
	}
	return nil
}
