package gateway

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// readState reads the status, settings and newest messages of a context.
//
// It requires a worker.
func (g *Gateway) readState(w http.ResponseWriter, r *http.Request) error {
	c, err := g.context(r)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), answerTimeout)
	defer cancel()
	state, err := c.State(ctx)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, state)
	return nil
}

// interrupt stops the running answer.
//
// The text received so far is kept. Without a running answer, it has no effect.
func (g *Gateway) interrupt(w http.ResponseWriter, r *http.Request) error {
	return g.act(w, r, Context.Interrupt)
}

// closeContext ends the session of a context and stops a running answer, or with `purge` deletes the context for ever.
//
// The log is kept, and the next event starts a session that continues it. It has no effect on a closed context.
//
// With `purge`, which requires the role admin, a worker deletes the histories, schedules, log, files and cursors of the context. `Location` is the path
// of the receipt. Input that arrives in the meantime is deleted, too. Afterwards the name is free.
func (g *Gateway) closeContext(w http.ResponseWriter, r *http.Request) error {
	switch purge := r.URL.Query().Get("purge"); purge {
	case "":
	case "true":
		return g.purge(w, r)
	default:
		return badRequest("purge %q: invalid (true, or absent)", purge)
	}
	return g.act(w, r, func(c Context, ctx context.Context) error { return c.Close(ctx, r.URL.Query().Get("reason")) })
}

// isPurge reports whether a request to close a context deletes it, which [Gateway.identify] admits for admins only.
func isPurge(r *http.Request) bool { return r.URL.Query().Get("purge") == "true" }

func (g *Gateway) purge(w http.ResponseWriter, r *http.Request) error {
	forks := client.Forks(r.URL.Query().Get("forks"))
	if !slices.Contains(append(forks.Values(), ""), forks) {
		return badRequest("forks %q: invalid (keep or delete)", string(forks))
	}
	w.Header().Set("Location", "/contexts/"+r.PathValue("name")+"/deletion")
	err := g.act(w, r, func(c Context, ctx context.Context) error {
		return c.StartDeletion(ctx, client.DeleteOptions{Forks: forks})
	})
	if err != nil {
		w.Header().Del("Location")
	}
	return err
}

// readDeletion reads the receipt of the newest deletion of a context.
//
// It has no `endedAt` while the deletion runs. Receipts are kept for the retention period of Temporal.
func (g *Gateway) readDeletion(w http.ResponseWriter, r *http.Request) error {
	c, err := g.context(r)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), answerTimeout)
	defer cancel()
	deletion, err := c.Deletion(ctx)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, deletion)
	return nil
}

// act completes the request even if the client disconnects.
func (g *Gateway) act(w http.ResponseWriter, r *http.Request, action func(Context, context.Context) error) error {
	c, err := g.context(r)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), answerTimeout)
	defer cancel()
	err = action(c, ctx)
	tenantOf(r).listing.invalidate()
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}

const (
	defaultPage = 100
	maxPage     = 1000
)

func parseLimit(query url.Values) (int, error) {
	text := query.Get("limit")
	if text == "" {
		return defaultPage, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxPage {
		return 0, badRequest("limit %q: invalid (1 to %d)", text, maxPage)
	}
	return n, nil
}

type contextPage struct {
	Contexts []client.Summary `json:"contexts"`
	Next     string           `json:"next,omitempty"` // the path of the next page; absent on the last page
}

// search reads the list from its beginning. Temporal cannot search for a part of a name or start at
// a context, and lists older sessions of a context, too.
type search struct {
	part   string // of the name, in lower case
	status wire.Status
	from   listCursor
	limit  int
}

func parseSearch(query url.Values) (search, error) {
	count, err := parseLimit(query)
	if err != nil {
		return search{}, err
	}
	status := wire.Status(query.Get("status"))
	if statuses := []wire.Status{"", wire.StatusIdle, wire.StatusWaiting, wire.StatusClosed}; !slices.Contains(statuses, status) {
		return search{}, badRequest("status %q: invalid (idle, waiting or closed)", status)
	}
	from, err := parseCursor(query.Get("from"))
	return search{part: strings.ToLower(query.Get("q")), status: status, from: from, limit: count}, err
}

func (s search) in(list iter.Seq2[client.Summary, error]) (found []client.Summary, more bool, err error) {
	found = []client.Summary{}
	for c, err := range list {
		if err != nil {
			return nil, false, err
		}
		if s.from.isBefore(c) || s.status != "" && c.Status != s.status || !strings.Contains(strings.ToLower(c.ContextName), s.part) {
			continue
		}
		if len(found) == s.limit {
			return found, true, nil
		}
		found = append(found, c)
	}
	return found, false, nil
}

// listContexts lists contexts: open ones by descending `startedAt`, then closed ones by descending `closedAt`.
//
// The list is cached for one second. Sending to a context or acting on one through this gateway invalidates the cache.
func (g *Gateway) listContexts(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	wanted, err := parseSearch(query)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), answerTimeout)
	defer cancel()
	listing := tenantOf(r).listing
	head, err := listing.head(ctx)
	if err != nil {
		return err
	}
	found, more, err := wanted.in(head.all()) // the full list is read only if the cached head does not fill the page
	if !more && !head.complete {
		found, more, err = wanted.in(listing.list(ctx, ""))
	}
	if err != nil {
		return err
	}
	page := contextPage{Contexts: found}
	if more {
		query.Set("from", cursorOf(found[len(found)-1]).String())
		page.Next = "/contexts?" + query.Encode()
	}
	writeJSON(w, http.StatusOK, page)
	return nil
}

// listCursor is the position after a context in the list of [client.Client.List]. Zero: the
// beginning.
type listCursor struct {
	Closed time.Time `json:"closed,omitzero"`
	At     time.Time `json:"at"`
	Name   string    `json:"name"`
	isPast bool
}

func cursorOf(s client.Summary) listCursor {
	return listCursor{Closed: s.ClosedAt, At: s.StartedAt, Name: s.ContextName}
}

func (c listCursor) String() string {
	text, _ := json.Marshal(c) // a time and a string always encode
	return base64.RawURLEncoding.EncodeToString(text)
}

func parseCursor(text string) (listCursor, error) {
	if text == "" {
		return listCursor{isPast: true}, nil
	}
	var c listCursor
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(data, &c)
	}
	if err != nil {
		return c, badRequest("from: invalid (use the value of a next link)")
	}
	return c, nil
}

// isBefore reports whether s precedes the position. Call it for each context in the order of the list,
// because it keeps state: among contexts with the same times as the position, all up to and including
// the one with its name precede it.
func (c *listCursor) isBefore(s client.Summary) bool {
	order := cmp.Or(-compareEnds(s.ClosedAt, c.Closed), -s.StartedAt.Compare(c.At))
	if c.At.IsZero() || order > 0 || order == 0 && c.isPast {
		return false
	}
	c.isPast = c.isPast || s.ContextName == c.Name
	return true
}

// compareEnds compares the ends of two sessions. Zero, a session without an end, is the latest.
func compareEnds(a, b time.Time) int {
	switch {
	case a.IsZero() && b.IsZero():
		return 0
	case a.IsZero():
		return 1
	case b.IsZero():
		return -1
	}
	return a.Compare(b)
}

type health struct {
	Status string `json:"status" schema:"const=statusOK"`
}

type readiness struct {
	health
	Deltas bool `json:"deltas"` // whether answers are streamed
}

const statusOK = "ok"

// healthy checks that the gateway serves.
func (g *Gateway) healthy(w http.ResponseWriter, _ *http.Request) error {
	writeJSON(w, http.StatusOK, health{statusOK})
	return nil
}

// ready checks that Temporal is reachable and that the gateway is not shutting down.
func (g *Gateway) ready(w http.ResponseWriter, r *http.Request) error {
	if g.closing.Err() != nil {
		return errClosing
	}
	if err := g.probe.check(r.Context()); err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, readiness{health{statusOK}, g.client.Live()})
	return nil
}
