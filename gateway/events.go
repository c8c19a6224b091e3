package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// events is GET /contexts/{name}/events: a page of the log, or a stream.
func (g *Gateway) events(w http.ResponseWriter, r *http.Request) error {
	of, err := g.context(r)
	if err != nil {
		return err
	}
	from := r.URL.Query().Get("from")
	if wantsStream(r) {
		from = cmp.Or(r.Header.Get("Last-Event-ID"), from)
	}
	if from != "" && (event.Counter(from) == 0 || !strings.HasPrefix(from, of.Name()+":")) {
		return badRequest("from or Last-Event-ID %q: want the id of an event of the context, like %s", from, event.FormatID(of.Name(), 1))
	}
	if wantsStream(r) {
		return g.streamEvents(w, r, of, from)
	}
	return g.pageOfEvents(w, r, of, from)
}

type eventPage struct {
	Events []json.RawMessage `json:"events"`
	// Next is the path of the next page; empty at the end of the log.
	Next string `json:"next,omitempty"`
}

// maxPageBytes is the approximate maximum size of a page of events.
const maxPageBytes = 8 << 20

func (g *Gateway) pageOfEvents(w http.ResponseWriter, r *http.Request, of Context, from string) error {
	most, err := limit(r.URL.Query())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), answerTimeout)
	defer cancel()
	page := eventPage{Events: []json.RawMessage{}}
	held := share{of: g.answers}
	defer held.release()
	size, last := 0, ""
	for e, err := range of.Events(ctx, from) {
		if err != nil {
			return err
		}
		data, err := e.MarshalJSON()
		if err != nil {
			return err
		}
		full := len(page.Events) == most || size > maxPageBytes
		if !full {
			err := held.grow(int64(len(data)))
			if full = err != nil; full && len(page.Events) == 0 {
				return err
			}
		}
		if full {
			query := url.Values{"from": {last}}
			if asked := r.URL.Query().Get("limit"); asked != "" {
				query.Set("limit", asked)
			}
			page.Next = "/contexts/" + of.Name() + "/events?" + query.Encode()
			break
		}
		page.Events = append(page.Events, data)
		size, last = size+len(data), e.ID
	}
	w.Header().Set("Vary", "Accept")
	writeJSON(w, http.StatusOK, page)
	return nil
}

func (g *Gateway) streamEvents(w http.ResponseWriter, r *http.Request, of Context, from string) error {
	room, leave, err := g.rooms.enter(of, true)
	if err != nil {
		return err
	}
	defer leave()
	at := eventPlace{last: event.Counter(from)}
	return g.serveStream(w, r, func(ctx context.Context, out *stream) (<-chan struct{}, error) {
		for {
			news, err := room.eventsAfter(at)
			if err != nil {
				return nil, err
			}
			if news.behind {
				if err := readLog(ctx, of, &at, out); err != nil {
					return nil, err
				}
				at.last = max(at.last, news.at.last)
				continue
			}
			if news.begun {
				if err := out.send(news.frames...); err != nil {
					return nil, err
				}
			}
			at = news.at
			return news.more, nil
		}
	})
}

// readLog sends the log after a position, and advances the position.
func readLog(ctx context.Context, of Context, at *eventPlace, out *stream) error {
	from := ""
	if at.last > 0 {
		from = event.FormatID(of.Name(), at.last)
	}
	for e, err := range of.Events(ctx, from) {
		if err != nil {
			return err
		}
		if err := out.write(eventFrame(e)); err != nil {
			return err
		}
		at.last = event.Counter(e.ID)
	}
	return out.send()
}
