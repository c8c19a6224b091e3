package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/pause"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// target is a context under attack.
type target struct {
	*fuzz
	name, id string
	context  *client.Context
	life     context.Context // of the connections that stay open until the checks end
	rand     *rand.Rand      // of the current step
	number   int             // of the current step
	trail    []string

	mu       sync.Mutex // guards the fields below
	log      []event.Event
	accepted []input
	problems []error
	resets   int
	forks    []*client.Context
}

// input was accepted, or may have been.
type input struct {
	key     string
	first   string // key of the first event of the same input, which its rejection has
	eventID string // "" if it is not recorded yet
	step    int
	unsure  bool        // the outcome is unknown, or a termination may have lost it
	note    *event.Note // nil: not compared
}

func (f *fuzz) runTarget(ctx context.Context, n int) error {
	name := fmt.Sprintf("fuzz-%d-%d", f.options.seed, n)
	opened, err := f.Contexts.Open(name)
	if err != nil {
		return err
	}
	life, end := context.WithCancel(ctx)
	defer end()
	t := &target{fuzz: f, name: name, id: wire.WorkflowID(name), context: opened, life: life}
	var following sync.WaitGroup
	defer following.Wait()
	defer end()
	following.Go(t.view)
	following.Go(t.followAlways)
	for i := range f.options.steps {
		t.number, t.rand = i, f.options.random(n, i)
		s := f.options.choose(t.rand)
		began := time.Now()
		step, cancel := context.WithTimeout(ctx, doorTimeout)
		err := s.run(step, t)
		cancel()
		if ctx.Err() != nil {
			return nil // the cause is reported once
		}
		line := fmt.Sprintf("%3d %-16s %4d ms  %s", i, s.name, time.Since(began).Milliseconds(), outcome(err))
		t.trail = append(t.trail, line)
		if f.options.verbose {
			fmt.Println(name, line)
		}
	}
	if err := t.check(ctx); err != nil && ctx.Err() == nil {
		return fmt.Errorf("%s: %w\n%s\nrepeat: bin/fuzz -seed %d -context %d -steps %d", name, err, strings.Join(t.trail, "\n"), f.options.seed, n, f.options.steps)
	}
	return nil
}

func outcome(err error) string {
	if err == nil {
		return "ok"
	}
	text := event.Redact(err.Error(), 200)
	return strings.Join(strings.Fields(text), " ")
}

func (t *target) wrong(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.problems = append(t.problems, fmt.Errorf(format, args...))
}

func (t *target) accept(in ...input) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, i := range in {
		i.step = t.number
		i.first = cmp.Or(i.first, i.key)
		t.accepted = append(t.accepted, i)
	}
}

// lose makes everything unsure that is not recorded, or that a reset may have left to be recorded again.
func (t *target) lose() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.accepted {
		t.accepted[i].unsure = t.accepted[i].unsure || t.accepted[i].eventID == "" || t.resets > 0
	}
}

// newKey returns a client event id that was not used.
func (t *target) newKey() string { return fmt.Sprintf("%s-%d-%x", t.name, t.number, t.rand.Uint32()) }

// events are those that the follower has received.
func (t *target) events() []event.Event {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.log)
}

// followAlways keeps the log for steps that refer to it.
func (t *target) followAlways() {
	for t.life.Err() == nil {
		switch err := t.follow(); {
		case t.life.Err() != nil:
		case errors.Is(err, client.ErrOtherStore): // the start of a stranger, until a worker opens the context
			pause.For(t.life, 200*time.Millisecond)
		default:
			t.wrong("follow: %w", err)
			return
		}
	}
}

func (t *target) follow() error {
	for e, err := range t.context.Follow(t.life, client.FollowOptions{Deltas: true}) {
		switch {
		case err != nil:
			return err
		case e.ID == "":
			continue
		}
		t.mu.Lock()
		if n := event.Counter(e.ID); n <= len(t.log) { // a reset
			t.log = t.log[:max(0, n-1)]
		}
		t.log = append(t.log, e)
		t.mu.Unlock()
	}
	return nil
}

// view reads the transcript as a browser does, so that the gateway patches one document during all steps.
func (t *target) view() {
	for t.life.Err() == nil {
		response, err := t.get(t.life, "/transcript", "text/event-stream", &http.Client{})
		if err == nil {
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
		}
		pause.For(t.life, 200*time.Millisecond) // the gateway ended the stream, or the context does not exist
	}
}

func (t *target) url(path string) string {
	return t.gateway.Ready["url"] + "/contexts/" + t.name + path
}

func (t *target) get(ctx context.Context, path, accept string, connection *http.Client) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, t.url(path), http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", accept)
	return connection.Do(request)
}

// do sends a request and returns its status and the beginning of its body. It reports internal errors of the gateway.
func (t *target) do(request *http.Request) (int, []byte, error) {
	response, err := t.http.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, mib))
	if response.StatusCode == http.StatusInternalServerError {
		t.wrong("%s %s: %s: %s", request.Method, request.URL, response.Status, body)
	}
	return response.StatusCode, body, err
}

// post sends a body to /events and notes what was accepted. The keys are the client event ids in the body.
func (t *target) post(ctx context.Context, body []byte, header http.Header, keys ...string) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, t.url("/events"), bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	request.Header = http.Header{"Content-Type": {"application/json"}}
	for name, values := range header {
		request.Header[name] = values
	}
	status, answer, err := t.do(request)
	if err != nil || status >= 500 {
		for _, key := range keys {
			t.accept(input{key: key, first: keys[0], unsure: true})
		}
	}
	if err != nil {
		return status, err
	}
	if status != http.StatusAccepted {
		return status, fmt.Errorf("%d %s", status, answer)
	}
	var receipt client.Receipt
	if err := json.Unmarshal(answer, &receipt); err != nil {
		return status, err
	}
	if len(receipt.ClientEventIDs) == 0 {
		t.wrong("POST /events: 202 without client event ids: %s", answer)
	}
	for i, key := range receipt.ClientEventIDs {
		in := input{key: key, first: receipt.ClientEventIDs[0]}
		if i < len(receipt.EventIDs) {
			in.eventID = receipt.EventIDs[i]
		}
		t.accept(in)
	}
	return status, nil
}

// send sends an event over HTTP and returns its client event id.
func (t *target) send(ctx context.Context, body event.Body) (string, error) {
	e := event.New(body)
	e.ClientEventID = t.newKey()
	data, err := e.MarshalJSON()
	if err != nil {
		return "", err
	}
	_, err = t.post(ctx, data, nil, e.ClientEventID)
	return e.ClientEventID, err
}

var errNothing = errors.New("nothing to do")
