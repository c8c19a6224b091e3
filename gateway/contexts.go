package gateway

import (
	"context"
	"net/http"
	"slices"

	"github.com/seed-9ed7edd4/chronicle/client"
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
// With `purge`, which requires the role admin, a worker deletes the histories, schedules, log, files and cursors of the
// context. `Location` is the path of the receipt. The response comes when the session has ended, or after ten seconds.
// Input that is sent then begins a new context, which opens when the deletion has ended. A repeated request joins a running
// deletion, and resumes one that failed.
func (g *Gateway) closeContext(w http.ResponseWriter, r *http.Request) error {
	purge := r.URL.Query().Get("purge")
	switch {
	case purge != "" && purge != "true":
		return badRequest("purge %q: invalid (true, or absent)", purge)
	case isPurge(r):
		return g.purge(w, r)
	case r.URL.Query().Has("forks"):
		return badRequest("forks: want purge=true with it")
	}
	return g.act(w, r, func(c Context, ctx context.Context) error { return c.Close(ctx, r.URL.Query().Get("reason")) })
}

// isPurge reports whether a request to close a context deletes it, which [Gateway.identify] admits for admins only.
func isPurge(r *http.Request) bool { return r.URL.Query().Has("purge") }

func (g *Gateway) purge(w http.ResponseWriter, r *http.Request) error {
	forks := client.Forks(r.URL.Query().Get("forks"))
	if !slices.Contains(append(forks.Values(), ""), forks) {
		return badRequest("forks %q: invalid (keep or delete)", string(forks))
	}
	w.Header().Set("Location", g.options.PublicPath+"/contexts/"+r.PathValue("name")+"/deletion")
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
// While the deletion runs, it has what was removed so far, and no `endedAt`. If it failed, `error` says why and what to do: a new
// request to delete resumes it. Receipts are kept for the retention period of Temporal.
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
	if err := g.actOn(r, c, action); err != nil {
		return err
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}

func (g *Gateway) actOn(r *http.Request, c Context, action func(Context, context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), answerTimeout)
	defer cancel()
	return action(c, ctx)
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
