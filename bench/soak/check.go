package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/bench/rig"
	"github.com/seed-9ed7edd4/chronicle/event"
)

// check reads the log of the client's context and says what does not hold; see
// the package comment.
func (c *client) check(ctx context.Context) error {
	var log []event.Event
	for e, err := range c.context.Events(ctx, "") {
		if err != nil {
			return fmt.Errorf("%s: read the log: %w", c.context.Name(), err)
		}
		log = append(log, e)
	}
	c.soaking.counts.events.Add(int64(len(log)))
	c.mu.Lock()
	defer c.mu.Unlock()
	err := errors.Join(
		checkChain(c.context.Name(), log),
		c.checkTold(log),
		c.checkMessages(log),
		checkRequests(log),
		checkAnswers(log),
		c.checkRest(log),
	)
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", c.context.Name(), err, tail(log))
	}
	return nil
}

func checkChain(name string, log []event.Event) error {
	var problems []error
	parent := event.Event{}
	for i, e := range log {
		if want := event.FormatID(name, i+1); e.ID != want || e.ParentID != parent.ID {
			problems = append(problems, fmt.Errorf("event %d is %s after %s, want %s after %s", i+1, e.ID, e.ParentID, want, parent.ID))
		}
		if e.Timestamp.Before(parent.Timestamp) {
			problems = append(problems, fmt.Errorf("%s is older than the event before it", e.ID))
		}
		parent = e
	}
	return errors.Join(problems...)
}

// checkTold compares what the follower was told with the log, which may have
// grown since by a message that was on its way for long.
func (c *client) checkTold(log []event.Event) error {
	for i, e := range c.told {
		if i >= len(log) || log[i].ID != e.ID || log[i].Tag() != e.Tag() {
			return fmt.Errorf("the follower was told %s %s as event %d, which the log does not bear out", e.Tag(), e.ID, i+1)
		}
	}
	return nil
}

// checkMessages compares what was sent with the log. A message of which the
// client is unsure may be there or not, and may have been overtaken.
func (c *client) checkMessages(log []event.Event) error {
	sent, want := map[string]string{}, []string{}
	for _, m := range c.sent {
		sent[m.id] = m.content
		if !c.unsure[m.id] {
			want = append(want, m.id)
		}
	}
	var problems []error
	var got []string
	seen := map[string]bool{}
	for _, e := range log {
		body, ok := e.Body.(event.UserMessage)
		if !ok {
			continue
		}
		switch id := e.ClientEventID; {
		case seen[id]:
			problems = append(problems, fmt.Errorf("message %s is doubled as %s", id, e.ID))
		case sent[id] != body.Content:
			problems = append(problems, fmt.Errorf("%s says %q, but what was sent as %s is %q", e.ID, body.Content, id, sent[id]))
		case !c.unsure[id]:
			got = append(got, id)
		}
		seen[e.ClientEventID] = true
	}
	for _, id := range want {
		if !seen[id] {
			problems = append(problems, fmt.Errorf("message %s is lost", id))
		}
	}
	if len(problems) == 0 && !slices.Equal(want, got) {
		problems = append(problems, errors.New("the messages are not in the order in which they were sent"))
	}
	return errors.Join(problems...)
}

// checkRequests follows the life of each request: attempts in order, one end,
// and none beside another.
func checkRequests(log []event.Event) error {
	var problems []error
	running, attempt, ended := "", 0, map[string]bool{}
	about := func(e event.Event, id string) {
		switch {
		case ended[id]:
			problems = append(problems, fmt.Errorf("%s is about request %s, which has ended", e.ID, id))
		case running != "" && running != id:
			problems = append(problems, fmt.Errorf("%s is about request %s, but %s runs", e.ID, id, running))
		case running == "":
			running, attempt = id, 0
		}
	}
	end := func(e event.Event, id string) {
		about(e, id)
		running, ended[id] = "", true
	}
	for _, e := range log {
		switch body := e.Body.(type) {
		case event.LLMRequestStarted:
			about(e, body.RequestID)
			if body.Attempt <= attempt {
				problems = append(problems, fmt.Errorf("%s is of attempt %d, after attempt %d", e.ID, body.Attempt, attempt))
			}
			attempt = body.Attempt
		case event.AssistantMessage:
			about(e, body.RequestID)
		case event.LLMRequestCompleted:
			end(e, body.RequestID)
		case event.LLMRequestInterrupted:
			end(e, body.RequestID)
		case event.LLMRequestFailed:
			end(e, body.RequestID)
		case event.InputRejected:
			problems = append(problems, fmt.Errorf("%s: input was refused: %s", e.ID, body.Reason))
		}
	}
	if running != "" {
		problems = append(problems, fmt.Errorf("request %s has no end", running))
	}
	return errors.Join(problems...)
}

// checkAnswers compares each answer with the newest message that it had seen.
func checkAnswers(log []event.Event) error {
	var problems []error
	for _, e := range log {
		body, ok := e.Body.(event.AssistantMessage)
		if !ok {
			continue
		}
		var message rig.Message
		for _, seen := range log[:min(len(log), event.Counter(body.ThroughEventID))] {
			if m, ok := seen.Body.(event.UserMessage); ok {
				message, _ = rig.ParseMessage(m.Content) // the client wrote it
			}
		}
		key, tokens := rig.Answered(body.Content)
		if key != message.Key || !body.Partial && tokens != message.Tokens || tokens > message.Tokens {
			problems = append(problems, fmt.Errorf("%s answers %q with %d tokens (partial: %v), want %q with %d",
				e.ID, key, tokens, body.Partial, message.Key, message.Tokens))
		}
	}
	return errors.Join(problems...)
}

// checkRest makes sure that nothing is left to do.
func (c *client) checkRest(log []event.Event) error {
	l := c.ledger()
	for _, e := range log {
		l.note(e)
	}
	if !l.rests() {
		return errors.New("a message has neither an answer nor a reason for having none")
	}
	return nil
}

// tail is the end of a log, to explain a problem.
func tail(log []event.Event) string {
	var b strings.Builder
	for _, e := range log[max(0, len(log)-30):] {
		data, err := e.MarshalJSON()
		if err != nil {
			data = []byte(err.Error())
		}
		fmt.Fprintf(&b, "  %s\n", event.Redact(string(data), 300))
	}
	return b.String()
}
