package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/pause"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/reducer/transcript"
	"github.com/seed-9ed7edd4/chronicle/test/laws"
)

// The bounds are generous, because the machine may be busy.
const (
	answerTimeout = 3 * time.Minute
	checkTimeout  = time.Minute
)

// check returns the violations; see the package comment. What a step sent may be recorded after the answer.
func (t *target) check(ctx context.Context) error {
	for _, c := range append([]*client.Context{t.context}, t.forks...) {
		if err := answer(ctx, c); err != nil {
			return errors.Join(append(t.problems, err)...)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	for {
		err := t.checkOnce(ctx)
		if err == nil || !pause.For(ctx, time.Second) {
			t.mu.Lock()
			defer t.mu.Unlock()
			return errors.Join(append(t.problems, err)...)
		}
	}
}

func (t *target) checkOnce(ctx context.Context) error {
	log, err := laws.Read(ctx, t.context)
	if err != nil {
		return err
	}
	problems := []error{t.checkInputs(log), laws.Requests(log), t.checkTranscript(ctx, log)}
	for _, secret := range secrets {
		problems = append(problems, laws.Secret(log, secret))
	}
	verified, err := t.context.Verify(ctx)
	for _, p := range verified.Problems {
		if !strings.Contains(p.Text, unknownBlob) { // clients may refer to bytes that no store has
			problems = append(problems, fmt.Errorf("verify: %s %s", p.Place, p.Text))
		}
	}
	return errors.Join(append(problems, err)...)
}

// unknownBlob is a reference of eventtest.
const unknownBlob = "sha256/0123456789abcdef"

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
	for n := 1; ; n++ {
		attempt, stop := context.WithTimeout(ctx, answerTimeout/3)
		err := ask(attempt, c, fmt.Sprintf("last-%d", n))
		stop()
		if err == nil {
			return nil
		}
		if !pause.For(ctx, time.Second) {
			return fmt.Errorf("%s does not answer within %v: %w", c.Name(), answerTimeout, err)
		}
	}
}

func ask(ctx context.Context, c *client.Context, word string) error {
	_ = c.Interrupt(ctx) // an error means that no run exists
	if _, err := c.Send(ctx, sane()...); err != nil {
		return fmt.Errorf("send the settings: %w", err)
	}
	got, err := c.Answer(ctx, event.New(event.UserMessage{Content: word + " message"}))
	if err == nil && got != answered+word {
		err = fmt.Errorf("the answer is %.100q", got)
	}
	return err
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
		recorded := slices.DeleteFunc(slices.Clone(found[in.key]), isRejection)
		rejected := slices.ContainsFunc(found[in.first], isRejection)
		switch {
		case repeated[in.key]:
			problems = append(problems, fmt.Errorf("%s of step %d is in the log %d times", in.key, in.step, len(recorded)))
		case len(recorded) > 1: // the context has forgotten the first one
		case len(recorded) == 0 && !rejected && !in.unsure:
			problems = append(problems, fmt.Errorf("%s of step %d was accepted as %q and is not in the log", in.key, in.step, in.eventID))
		case in.eventID == "" || t.resets > 0:
		case len(recorded) == 0 || recorded[0].ID != in.eventID:
			problems = append(problems, fmt.Errorf("%s of step %d was accepted as %s and is %v", in.key, in.step, in.eventID, recorded))
		case in.note != nil && recorded[0].Body != *in.note:
			problems = append(problems, fmt.Errorf("%s of step %d was accepted and is another event: %s", in.key, in.step, recorded[0].Tag()))
		}
		if len(problems) > 10 {
			break
		}
	}
	return errors.Join(problems...)
}

func isRejection(e event.Event) bool { return e.Tag() == event.TagInputRejected }

// checkTranscript compares the document that the gateway patched with that of the log.
func (t *target) checkTranscript(ctx context.Context, log []event.Event) error {
	var got struct{ Document transcript.Document }
	response, err := t.get(ctx, "/transcript", "application/json", t.http)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(&got); err != nil || response.StatusCode != http.StatusOK {
		return fmt.Errorf("GET /transcript: %s: %w", response.Status, err)
	}
	return laws.Transcript(log, got.Document)
}

// checkLogs checks that the logs of the worker and the gateway contain no secret.
func checkLogs(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if len(files) == 0 {
		return errors.Join(errors.New("no process has a log"), err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for _, secret := range secrets {
			if at := bytes.Index(data, []byte(secret)); at >= 0 {
				return fmt.Errorf("%s contains the secret %q:\n%s", file, secret, data[max(0, at-500):min(len(data), at+100)])
			}
		}
	}
	return nil
}
