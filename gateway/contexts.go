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

	"github.com/seed-9ed7edd4/chronicle/session"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

// state is GET /contexts/{name}/state.
func (g *Gateway) state(w http.ResponseWriter, r *http.Request) error {
	of, err := g.context(r)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), answerTimeout)
	defer cancel()
	state, err := of.State(ctx)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, state)
	return nil
}

// interrupt is POST /contexts/{name}/interrupt.
func (g *Gateway) interrupt(w http.ResponseWriter, r *http.Request) error {
	return g.ask(w, r, Context.Interrupt)
}

// end is DELETE /contexts/{name}. The log stays.
func (g *Gateway) end(w http.ResponseWriter, r *http.Request) error {
	return g.ask(w, r, func(c Context, ctx context.Context) error { return c.Close(ctx, r.URL.Query().Get("reason")) })
}

// ask asks a context for what it does later.
func (g *Gateway) ask(w http.ResponseWriter, r *http.Request, to func(Context, context.Context) error) error {
	c, err := g.context(r)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), answerTimeout)
	defer cancel()
	err = to(c, ctx)
	g.listing.change()
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}

// page is how much of a list is asked for.
const (
	defaultPage = 100
	maxPage     = 1000
)

// limit reads the parameter of that name.
func limit(query url.Values) (int, error) {
	text := query.Get("limit")
	if text == "" {
		return defaultPage, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxPage {
		return 0, badRequest("limit=%q: want 1 to %d", text, maxPage)
	}
	return n, nil
}

// listed is a page of contexts.
type listed struct {
	Contexts []session.Summary `json:"contexts"`
	// Next is the path of the page behind it; empty when there is none.
	Next string `json:"next,omitempty"`
}

// search is what somebody looks for in the list of contexts. Temporal's cannot be
// searched by a part of a name, has older sessions of the same context in it, and
// cannot be entered in the middle; so it is read from its beginning.
type search struct {
	part   string // of the name, in lower case
	status wire.Status
	from   listPlace
	most   int
}

func parseSearch(query url.Values) (search, error) {
	most, err := limit(query)
	if err != nil {
		return search{}, err
	}
	status := wire.Status(query.Get("status"))
	if statuses := []wire.Status{"", wire.StatusIdle, wire.StatusAnswering, wire.StatusClosed}; !slices.Contains(statuses, status) {
		return search{}, badRequest("status=%q: want idle, answering or closed", status)
	}
	from, err := parsePlace(query.Get("from"))
	return search{part: strings.ToLower(query.Get("q")), status: status, from: from, most: most}, err
}

// in returns what a list has of it, and whether there is more.
func (s search) in(list iter.Seq2[session.Summary, error]) (found []session.Summary, more bool, err error) {
	found = []session.Summary{}
	for c, err := range list {
		if err != nil {
			return nil, false, err
		}
		if s.from.isBefore(c) || s.status != "" && c.Status != s.status || !strings.Contains(strings.ToLower(c.ContextName), s.part) {
			continue
		}
		if len(found) == s.most {
			return found, true, nil
		}
		found = append(found, c)
	}
	return found, false, nil
}

// list is GET /contexts. What the head of the list does not have is looked for in
// all of it.
func (g *Gateway) list(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	sought, err := parseSearch(query)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), answerTimeout)
	defer cancel()
	head, err := g.listing.head(ctx)
	if err != nil {
		return err
	}
	found, more, err := sought.in(head.all())
	if !more && !head.whole {
		found, more, err = sought.in(g.listing.list(ctx, ""))
	}
	if err != nil {
		return err
	}
	page := listed{Contexts: found}
	if more {
		query.Set("from", placeOf(found[len(found)-1]).String())
		page.Next = "/contexts?" + query.Encode()
	}
	writeJSON(w, http.StatusOK, page)
	return nil
}

// listPlace is a place in the list of [session.Client.List]: behind the context
// with that name, start and end. The zero value is its beginning.
type listPlace struct {
	Closed time.Time `json:"closed,omitzero"`
	At     time.Time `json:"at"`
	Name   string    `json:"name"`
	// passed says that the context was seen.
	passed bool
}

func placeOf(s session.Summary) listPlace {
	return listPlace{Closed: s.ClosedAt, At: s.StartedAt, Name: s.ContextName}
}

func (p listPlace) String() string {
	text, _ := json.Marshal(p) // a time and a string have JSON
	return base64.RawURLEncoding.EncodeToString(text)
}

func parsePlace(text string) (listPlace, error) {
	if text == "" {
		return listPlace{passed: true}, nil
	}
	var p listPlace
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(data, &p)
	}
	if err != nil {
		return p, badRequest("from: want what a next link has")
	}
	return p, nil
}

// isBefore reports whether the next context of the list stands before the place.
// Of those that began and ended at the same moment, those up to its name do.
func (p *listPlace) isBefore(s session.Summary) bool {
	order := cmp.Or(-compareEnds(s.ClosedAt, p.Closed), -s.StartedAt.Compare(p.At))
	if p.At.IsZero() || order > 0 || order == 0 && p.passed {
		return false
	}
	p.passed = p.passed || s.ContextName == p.Name
	return true
}

// compareEnds compares when sessions ended. One that goes on ends last.
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

// health is what a supervisor is told.
type health struct {
	Status string `json:"status"`
	// Deltas says, of a gateway that is ready, whether answers can be seen while
	// they are made.
	Deltas *bool `json:"deltas,omitempty"`
}

// healthy is GET /healthz: the process serves.
func (g *Gateway) healthy(w http.ResponseWriter, _ *http.Request) error {
	writeJSON(w, http.StatusOK, health{Status: "ok"})
	return nil
}

// ready is GET /readyz: requests can be answered, and the gateway is not about to
// end.
func (g *Gateway) ready(w http.ResponseWriter, r *http.Request) error {
	if g.closing.Err() != nil {
		return errClosing
	}
	if err := g.probe.check(r.Context()); err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, health{Status: "ok", Deltas: new(g.client.Live())})
	return nil
}
