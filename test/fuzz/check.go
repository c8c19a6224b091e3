package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/pause"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/reducer/transcript"
)

// The bounds are generous, because the machine may be busy.
const (
	answerTimeout = 3 * time.Minute
	checkTimeout  = time.Minute
)

// check returns the violations; see the package comment.
func (t *target) check(ctx context.Context) error {
	if err := answer(ctx, t.context); err != nil {
		return errors.Join(append(t.found(), err)...)
	}
	for _, forked := range t.forks {
		if err := answer(ctx, forked); err != nil {
			t.wrong("%w", err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	var log []event.Event
	var err error
	// What a step sent may be recorded after the answer.
	for {
		if log, err = readLog(ctx, t.context); err == nil {
			if err = t.checkInputs(log); err == nil {
				break
			}
		}
		if !pause.For(ctx, time.Second) {
			return errors.Join(append(t.found(), err)...)
		}
	}
	problems := append(t.found(), checkRequests(log), checkKey(log), t.checkTranscript(ctx, log))
	for {
		verified, err := t.context.Verify(ctx)
		if err != nil {
			return errors.Join(append(problems, err)...)
		}
		// Clients may refer to bytes that no store has.
		verified.Problems = slices.DeleteFunc(verified.Problems, func(p client.Problem) bool { return strings.Contains(p.Text, unknownBlob) })
		if len(verified.Problems) == 0 {
			break
		}
		if !pause.For(ctx, time.Second) {
			for _, p := range verified.Problems {
				problems = append(problems, fmt.Errorf("verify: %s %s", p.Place, p.Text))
			}
			break
		}
	}
	return errors.Join(problems...)
}

// unknownBlob is a reference of eventtest.
const unknownBlob = "sha256/0123456789abcdef"

func (t *target) found() []error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]error(nil), t.problems...)
}

// sane are usable settings.
func sane() []event.Event {
	return []event.Event{
		event.New(event.SetDeliveryPolicy{Policy: event.PolicyInterrupt, QuietPeriodMs: new(int64(10)), MaxWaitMs: new(int64(500))}),
		event.New(event.SetProviderConfig{UseDefault: true, AsFallback: true}),
		event.New(event.SetProviderConfig{ProviderID: "openai", Model: usable}),
		event.New(event.SetRequestSettings{}), event.New(event.SetTools{}), event.New(event.BudgetSet{}),
		event.New(event.SetCompaction{}), event.New(event.SetTimeout{TimeoutMs: 30_000}),
		event.New(event.SetRetryConfig{MaxRetries: 3, InitialDelayMs: 100}),
	}
}

// answer gives a context usable settings and waits until it answers a message.
func answer(ctx context.Context, c *client.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	var last error
	for n := 1; ; n++ {
		attempt, stop := context.WithTimeout(ctx, answerTimeout/3)
		last = ask(attempt, c, n)
		stop()
		if last == nil {
			return nil
		}
		if !pause.For(ctx, time.Second) {
			return fmt.Errorf("%s does not answer within %v: %w", c.Name(), answerTimeout, last)
		}
	}
}

func ask(ctx context.Context, c *client.Context, n int) error {
	_ = c.Interrupt(ctx) // an error means that no run exists
	if _, err := c.Send(ctx, sane()...); err != nil {
		return fmt.Errorf("send the settings: %w", err)
	}
	word := fmt.Sprintf("last-%d", n)
	var got []string
	for e, err := range c.Ask(ctx, event.New(event.UserMessage{Content: word + " message"})) {
		if err != nil {
			return err
		}
		switch body := e.Body.(type) {
		case event.AssistantMessage:
			if body.Content == answered+word {
				return nil
			}
			got = append(got, fmt.Sprintf("%.100q", body.Content))
		case event.LLMRequestFailed:
			got = append(got, body.Error)
		case event.InputRejected:
			got = append(got, body.Reason)
		}
	}
	return fmt.Errorf("no answer, but %s", strings.Join(got, ", "))
}

func readLog(ctx context.Context, c *client.Context) (log []event.Event, err error) {
	for e, err := range c.Events(ctx, "") {
		if err != nil {
			return nil, fmt.Errorf("read the log: %w", err)
		}
		log = append(log, e)
	}
	return log, nil
}

// checkInputs checks that accepted input is in the log once.
func (t *target) checkInputs(log []event.Event) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	found := map[string][]event.Event{}
	keyed, newest := 0, map[string]int{} // the number of the newest event with a key
	repeated := map[string]bool{}
	for _, e := range log {
		if e.ClientEventID == "" {
			continue
		}
		found[e.ClientEventID] = append(found[e.ClientEventID], e)
		if !isRejection(e) {
			keyed++
			if n, ok := newest[e.ClientEventID]; ok && keyed-n <= reducer.MaxRecent {
				repeated[e.ClientEventID] = true
			}
			newest[e.ClientEventID] = keyed
		}
	}
	var problems []error
	for _, in := range t.accepted {
		recorded, at := 0, ""
		for _, e := range found[in.key] {
			if !isRejection(e) {
				recorded++
				at = e.ID
			}
		}
		rejected := slices.ContainsFunc(found[in.first], isRejection)
		switch {
		case repeated[in.key]:
			problems = append(problems, fmt.Errorf("%s of step %d is in the log %d times", in.key, in.step, recorded))
		case recorded > 1: // the context has forgotten the first one
		case recorded == 0 && !rejected && !in.unsure:
			problems = append(problems, fmt.Errorf("%s of step %d was accepted as %q and is not in the log", in.key, in.step, in.eventID))
		case in.eventID != "" && t.resets == 0 && at != in.eventID:
			problems = append(problems, fmt.Errorf("%s of step %d was accepted as %s and is %q", in.key, in.step, in.eventID, at))
		}
		if len(problems) > 10 {
			break
		}
	}
	return errors.Join(problems...)
}

func isRejection(e event.Event) bool { return e.Tag() == event.TagInputRejected }

func checkRequests(log []event.Event) error {
	var problems []error
	open, ended := "", map[string]bool{}
	for _, e := range log {
		switch body := e.Body.(type) {
		case event.LLMRequestStarted:
			if ended[body.RequestID] || open != "" && open != body.RequestID {
				problems = append(problems, fmt.Errorf("%s starts %s while %q runs", e.ID, body.RequestID, open))
			}
			open = body.RequestID
		case event.RequestEvent:
			id := body.Request()
			if !e.Tag().EndsRequest() {
				continue
			}
			if ended[id] || open != "" && open != id {
				problems = append(problems, fmt.Errorf("%s ends %s while %q runs; ended before: %v", e.ID, id, open, ended[id]))
			}
			ended[id], open = true, ""
		}
	}
	return errors.Join(problems...)
}

func checkKey(log []event.Event) error {
	for _, e := range log {
		if data, err := e.MarshalJSON(); err != nil {
			return err
		} else if bytes.Contains(data, []byte(key)) {
			return fmt.Errorf("%s %s contains the key of the provider", e.ID, e.Tag())
		}
	}
	return nil
}

// checkTranscript compares the document that the gateway patched with that of the log.
func (t *target) checkTranscript(ctx context.Context, log []event.Event) error {
	patcher := transcript.NewPatcher()
	for _, e := range log {
		patcher.Apply(e)
	}
	var problem error
	for {
		var got struct {
			Document struct{ Entries []json.RawMessage }
		}
		response, err := t.get(ctx, "/transcript", "application/json", t.http)
		if err != nil {
			return err
		}
		err = json.NewDecoder(response.Body).Decode(&got)
		_ = response.Body.Close()
		if err != nil || response.StatusCode != http.StatusOK {
			return fmt.Errorf("GET /transcript: %s: %w", response.Status, err)
		}
		if problem = compare(got.Document.Entries, patcher.Document().Entries); problem == nil || !pause.For(ctx, time.Second) {
			return problem
		}
	}
}

func compare(got []json.RawMessage, want []transcript.Item) error {
	for i := range max(len(got), len(want)) {
		var g, w []byte
		if i < len(got) {
			g = withoutProgress(got[i])
		}
		if i < len(want) {
			data, err := json.Marshal(want[i])
			if err != nil {
				return err
			}
			w = withoutProgress(data)
		}
		if !bytes.Equal(g, w) {
			return fmt.Errorf("entry %d of %d of the transcript is\n  %.1000s\nwant %d entries with\n  %.1000s", i, len(got), g, len(want), w)
		}
	}
	return nil
}

// withoutProgress normalizes an entry. Progress is ephemeral.
func withoutProgress(data []byte) []byte {
	var entry any
	if json.Unmarshal(data, &entry) != nil {
		return data
	}
	if item, ok := entry.(map[string]any); ok {
		if content, ok := item["content"].(map[string]any); ok {
			delete(content, "progress")
		}
	}
	data, _ = json.Marshal(entry) // it was decoded
	return data
}
