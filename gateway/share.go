package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/gateway/auth"
)

const (
	defaultShareDays = 7
	maxShareDays     = 365
)

// shareContext makes a link that reads this context, and nothing else, without another credential.
//
// The page at the link shows the conversation live. The part of the link after `#share=` is a bearer token for the events,
// the attachments, the state and the transcript of the context. The link ends when it expires, when the context is deleted,
// when the token that it was made with is revoked, and, with all others, when the session key of the gateway changes.
func (g *Gateway) shareContext(w http.ResponseWriter, r *http.Request) error {
	days := defaultShareDays
	if text := r.URL.Query().Get("days"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxShareDays {
			return badRequest("days %q: invalid (1 to %d)", text, maxShareDays)
		}
		days = n
	}
	c, err := g.context(r)
	if err != nil {
		return err
	}
	created, leave, err := creationOf(r.Context(), tenantOf(r), c)
	if err != nil {
		return err
	}
	leave()
	link, err := g.options.SignIn.Share(r, identityOf(r), auth.Shared{Context: c.Name(), Created: created}, time.Duration(days)*24*time.Hour)
	switch {
	case errors.Is(err, auth.ErrNoAuth):
		return problem(problemNoSharing, http.StatusNotImplemented, "The gateway cannot share",
			"without authentication, who reaches the gateway reads all contexts: send the address of the page, or set --auth of the gateway")
	case errors.Is(err, auth.ErrNoSessionKey):
		return problem(problemNoSharing, http.StatusNotImplemented, "The gateway cannot share",
			"links would end when it restarts: set --session-key-file of the gateway")
	case err != nil:
		return g.credentialProblem(w, r, err)
	}
	writeJSON(w, http.StatusCreated, link)
	return nil
}

// enterShared keeps the room of a shared context open until leave is called.
func enterShared(ctx context.Context, t *tenant, shared auth.Shared) (leave func(), err error) {
	c, err := t.open(shared.Context)
	if err != nil {
		return nil, err
	}
	created, leave, err := creationOf(ctx, t, c)
	switch {
	case errors.Is(err, client.ErrNoContext):
		return nil, fmt.Errorf("context %s: %w", shared.Context, client.ErrDeleted)
	case err != nil:
		return nil, err
	case !created.Equal(shared.Created): // it is another one, with the same name
		leave()
		return nil, fmt.Errorf("context %s: %w", shared.Context, client.ErrDeleted)
	}
	return leave, nil
}

// creationOf returns when a context was created, once its log has been read, and keeps its room open until leave is called.
func creationOf(ctx context.Context, t *tenant, c Context) (created time.Time, leave func(), err error) {
	room, leave, err := t.rooms.enter(c, false)
	if err != nil {
		return created, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	created, err = awaitRead(ctx, room.created)
	if err != nil {
		leave()
	}
	return created, leave, err
}

// created returns a channel until the log has been read.
func (r *room) created() (at time.Time, changed <-chan struct{}, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.err != nil:
		return at, nil, r.err
	case !r.isLoaded:
		return at, r.nextChange(), nil
	case r.isMissing:
		return at, nil, fmt.Errorf("context %s: %w", r.name, client.ErrNoContext)
	}
	return r.status.created, nil, nil
}
