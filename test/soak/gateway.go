package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/pause"
	"github.com/seed-9ed7edd4/chronicle/reducer/transcript"
)

func (u *user) url(path string) string {
	return u.gateway.Ready["url"] + "/contexts/" + u.name() + path
}

func (u *user) get(ctx context.Context, path, accept string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.url(path), http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", accept)
	return u.http.Do(request)
}

// view reads the transcript as a browser does, so that the gateway patches one document until the life of the user ends.
func (u *user) view() {
	for u.life.Err() == nil {
		response, err := u.get(u.life, "/transcript", "text/event-stream")
		if err == nil {
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
		}
		pause.For(u.life, 200*time.Millisecond) // the gateway ended the stream, or the context does not exist
	}
}

// document is the transcript that the gateway has patched.
func (u *user) document(ctx context.Context) (transcript.Document, error) {
	var got struct{ Document transcript.Document }
	response, err := u.get(ctx, "/transcript", "application/json")
	if err != nil {
		return got.Document, err
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(&got); err != nil || response.StatusCode != http.StatusOK {
		return got.Document, fmt.Errorf("GET /transcript: %s: %w", response.Status, err)
	}
	return got.Document, nil
}

// do sends a request and returns its status and the beginning of its body. It reports internal errors of the gateway.
func (u *user) do(request *http.Request) (int, []byte, error) {
	response, err := u.http.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, mib))
	if response.StatusCode == http.StatusInternalServerError {
		u.fail("%s %s: %s: %s", request.Method, request.URL, response.Status, body)
	}
	return response.StatusCode, body, err
}

// post sends a body to /events and notes what was accepted. The keys are the client event ids in the body.
func (u *user) post(ctx context.Context, body []byte, header http.Header, keys ...string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, u.url("/events"), bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header = http.Header{"Content-Type": {"application/json"}}
	for name, values := range header {
		request.Header[name] = values
	}
	status, answer, err := u.do(request)
	if err != nil || status >= 500 {
		for _, key := range keys {
			u.accept(input{key: key, first: keys[0], outcome: unknown})
		}
	}
	if err != nil {
		return err
	}
	if status != http.StatusAccepted {
		return fmt.Errorf("%d %s", status, answer)
	}
	var receipt client.Receipt
	if err := json.Unmarshal(answer, &receipt); err != nil {
		return err
	}
	if len(receipt.ClientEventIDs) == 0 {
		u.fail("POST /events: 202 without client event ids: %s", answer)
	}
	for i, key := range receipt.ClientEventIDs {
		in := input{key: key, first: receipt.ClientEventIDs[0], outcome: stored}
		if i < len(receipt.EventIDs) {
			in.outcome, in.eventID = recorded, receipt.EventIDs[i]
		}
		u.accept(in)
	}
	return nil
}

func (u *user) postEvent(ctx context.Context, body event.Body) error {
	e := event.New(body)
	e.ClientEventID = u.newKey()
	data, err := e.MarshalJSON()
	if err != nil {
		return err
	}
	return u.post(ctx, data, nil, e.ClientEventID)
}

// newKey returns a client event id that was not used.
func (u *user) newKey() string { return fmt.Sprintf("%s-%d-%x", u.name(), u.step, u.rand.Uint32()) }

// events are those that the follower has received.
func (u *user) events() []event.Event {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.followed)
}

var errNothing = errors.New("nothing to do")
