// Package laws checks the log of a context against laws that hold for every context, whatever happened to it. The
// soak test and the fuzz program use it.
package laws

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/reducer/transcript"
)

// Read returns the whole log of a context.
func Read(ctx context.Context, c *client.Context) (log []event.Event, err error) {
	for e, err := range c.Events(ctx, "") {
		if err != nil {
			return log, fmt.Errorf("read the log: %w", err)
		}
		log = append(log, e)
	}
	return log, nil
}

// Requests checks that each request ends once, that none overlap, and that attempts are in order.
func Requests(log []event.Event) error {
	var problems []error
	running, attempt, ended := "", 0, map[string]bool{}
	for _, e := range log {
		id := event.RequestOf(e.Body)
		started, isStart := e.Body.(event.LLMRequestStarted)
		if !isStart && !e.Tag().EndsRequest() {
			continue
		}
		if ended[id] || running != "" && running != id {
			problems = append(problems, fmt.Errorf("%s %s is of request %s, which ended before: %v; %q is running", e.ID, e.Tag(), id, ended[id], running))
		}
		if !isStart {
			running, attempt, ended[id] = "", 0, true
			continue
		}
		if running = id; started.Attempt <= attempt {
			problems = append(problems, fmt.Errorf("%s is attempt %d of %s, after attempt %d", e.ID, started.Attempt, id, attempt))
		}
		attempt = started.Attempt
	}
	return errors.Join(problems...)
}

// Secret checks that no event contains a secret.
func Secret(log []event.Event, secret string) error {
	for _, e := range log {
		if data, err := e.MarshalJSON(); err != nil || bytes.Contains(data, []byte(secret)) {
			return fmt.Errorf("%s %s contains the secret %q, or is invalid: %w", e.ID, e.Tag(), secret, err)
		}
	}
	return nil
}

// Transcript compares a transcript with the one that is rendered from the log.
func Transcript(log []event.Event, got transcript.Document) error {
	patcher := transcript.NewPatcher()
	for _, e := range log {
		patcher.Apply(e)
	}
	want := patcher.Document().Entries
	for i := range max(len(want), len(got.Entries)) {
		x, y := entry(want, i), entry(got.Entries, i)
		if !bytes.Equal(x, y) {
			return fmt.Errorf("entry %d of %d of the transcript is\n  %.1000s\nwant %d entries with\n  %.1000s", i, len(got.Entries), y, len(want), x)
		}
	}
	return nil
}

func entry(all []transcript.Item, i int) []byte {
	if i >= len(all) {
		return nil
	}
	item := all[i]
	item.Content.Progress = "" // not in the log
	return encode(item)
}

func encode(value any) []byte {
	data, _ := json.Marshal(value) // items and states always encode
	return data
}

// Fold checks that the state that the log folds to is the same if it is encoded and decoded after cut events.
func Fold(log []event.Event, cut int) error {
	whole, split := reducer.Initial(), reducer.Initial()
	for i, e := range log {
		if i == cut {
			var decoded reducer.ReducedContext
			if err := json.Unmarshal(encode(split), &decoded); err != nil {
				return fmt.Errorf("decode the state at event %d: %w", i, err)
			}
			split = decoded
		}
		whole, split = reducer.Reduce(whole, e), reducer.Reduce(split, e)
	}
	if x, y := encode(whole), encode(split); !bytes.Equal(x, y) {
		return fmt.Errorf("the state that was decoded at event %d folds to another one:\n  %.2000s\nwant\n  %.2000s", cut, y, x)
	}
	return nil
}
