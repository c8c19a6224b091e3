package gateway

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
)

const maxWait = time.Minute

// readTurn reads what became of an event that was sent.
//
// `Location` of the response to the event is the path. With `wait`, the response comes when the turn has ended or waits
// for a client, but at the latest after this time; until then, it counts as a stream. It is 404 if the event is neither
// recorded nor waits for a worker.
func (g *Gateway) readTurn(w http.ResponseWriter, r *http.Request) error {
	c, err := g.context(r)
	if err != nil {
		return err
	}
	var wait time.Duration
	if text := r.URL.Query().Get("wait"); text != "" {
		if wait, err = time.ParseDuration(text); err != nil || wait < 0 || wait > maxWait {
			return badRequest("wait %q: invalid (a duration like 30s, at most %v)", text, maxWait)
		}
	}
	if wait > 0 {
		release, err := g.countStreams(r, w, 1)
		if err != nil {
			return err
		}
		defer release()
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(wait + answerTimeout + writeTimeout))
	}
	ctx, cancel := context.WithTimeout(r.Context(), wait+answerTimeout)
	defer cancel()
	defer context.AfterFunc(g.closing, cancel)()
	turn, err := client.TurnOf(ctx, c, r.PathValue("id"), wait)
	if err == nil && wait > 0 {
		err = g.recheck(w, r)
	}
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, turn)
	return nil
}

// locateTurn sets the Location of the turn of events: of the newest one that requires an answer, or else of the newest one.
func (g *Gateway) locateTurn(w http.ResponseWriter, contextName string, events []event.Event, sent client.Receipt) {
	ids := sent.EventIDs
	if len(ids) == 0 {
		ids = sent.ClientEventIDs
	}
	id, asks := "", false
	for i := range min(len(ids), len(events)) {
		if does := event.RequiresAnswer(events[i].Body); does || !asks {
			id, asks = ids[i], does
		}
	}
	if id != "" {
		w.Header().Set("Location", g.options.PublicPath+"/contexts/"+contextName+"/turns/"+url.PathEscape(id))
	}
}
