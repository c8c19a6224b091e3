package openai

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
)

func createResponse(x *gateway.Exchange) error {
	body, err := x.Body()
	if err != nil {
		return err
	}
	a := &ask{request: new(request), x: x, body: body, items: map[string][]item{}}
	if err := decode("", body, a.request); err != nil {
		return err
	}
	isKept := a.Store == nil || *a.Store
	switch {
	case a.Conversation != "" && a.Previous != nil:
		return gateway.BadRequest("previous_response_id", "previous_response_id and conversation exclude each other")
	case a.Background && !isKept:
		return gateway.BadRequest("background", "background requires store")
	case (a.Conversation != "" || a.Previous != nil) && !isKept:
		return unsupported("store", "what a conversation has is stored (leave store out)")
	}
	if err := a.locate(); err != nil {
		return err
	}
	in, err := readInput("input", a.Input, a.find)
	if err != nil {
		return err
	}
	if !isKept {
		defer a.discard()
	}
	t, err := a.send(in)
	switch {
	case err != nil:
		return err
	case a.Stream:
		return t.stream(x)
	case a.Background:
		err = t.read()
	default:
		err = errors.Join(t.follow(), modelError(a.Model, t.request))
	}
	if err == nil {
		x.JSON(http.StatusOK, t.response)
	}
	return err
}

// ofResponse serves requests about a response.
func ofResponse(serve func(x *gateway.Exchange, t *turn) error) func(x *gateway.Exchange) error {
	return func(x *gateway.Exchange) error {
		t, err := load(x, "response_id", x.Request.PathValue("id"))
		if err != nil {
			return err
		}
		return serve(x, t)
	}
}

func getResponse(x *gateway.Exchange, t *turn) error {
	query := x.Request.URL.Query()
	isStream, err := wantsStream(x)
	if err != nil {
		return err
	}
	if !isStream {
		if err := t.read(); err != nil {
			return err
		}
		x.JSON(http.StatusOK, t.response)
		return nil
	}
	if text := query.Get("starting_after"); text != "" {
		after, err := strconv.ParseInt(text, 10, 64)
		if err != nil || after < 0 {
			return gateway.BadRequest("starting_after", "starting_after %q is invalid (want the sequence_number of an event)", event.Redact(text, 50))
		}
		past := *t
		if err := past.read(); err != nil {
			return err
		}
		if after >= past.number(past.thread.Last+1, 0) {
			return gateway.BadRequest("starting_after", "starting_after %d is after the newest event", after)
		}
		t.after = after
	}
	return t.stream(x)
}

// wantsStream reads the query, or the body that openai-go sends with GET.
func wantsStream(x *gateway.Exchange) (bool, error) {
	var in struct {
		Stream bool `json:"stream"`
	}
	if x.Request.ContentLength > 0 {
		body, err := io.ReadAll(io.LimitReader(x.Request.Body, 1<<10)) // it has no Content-Type
		if err != nil || decode("", body, &in) != nil {
			return false, gateway.BadRequest("", "the body is invalid (want none)")
		}
	}
	return in.Stream || x.Request.URL.Query().Get("stream") == "true", nil
}

// cancelResponse stops the answer of a response. One that has ended stays as it is.
func cancelResponse(x *gateway.Exchange, t *turn) error {
	past := *t
	if err := past.read(); err != nil {
		return err
	}
	if !past.isDone {
		now, err := t.h.Snapshot()
		if err != nil {
			return err
		}
		if past.request == nil || now.Request != past.request.ID {
			return gateway.BadRequest("", "the response is queued behind another answer (cancel that, or wait)")
		}
		if err := t.h.Interrupt(); err != nil {
			return err
		}
	}
	if err := t.follow(); err != nil {
		return err
	}
	x.JSON(http.StatusOK, t.response)
	return nil
}

// deleteResponse deletes the context that was made for a response.
func deleteResponse(x *gateway.Exchange, t *turn) error {
	if !strings.HasPrefix(t.h.Name(), ownPrefix) {
		return unsupported("", "a response in a conversation cannot be deleted (delete the conversation)")
	}
	if err := t.h.Delete(); err != nil {
		return err
	}
	x.JSON(http.StatusOK, map[string]any{"id": t.response.ID, "object": "response", "deleted": true})
	return nil
}

func listInputItems(x *gateway.Exchange, t *turn) error { return writeItems(x, t.h, t.trigger) }
