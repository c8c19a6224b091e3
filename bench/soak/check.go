package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/bench/rig"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

// check returns what does not hold of a log; see the package comment.
func (s *story) check(log []event.Event, told view, state wire.State) error {
	return errors.Join(
		checkChain(s.name, log),
		s.checkTold(log, told),
		s.checkMessages(log),
		s.checkSessions(log),
		s.checkRequests(log),
		checkAnswers(log),
		s.checkRest(log),
		checkState(s.name, log, state),
	)
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
func (s *story) checkTold(log []event.Event, told view) error {
	// The run of a reset that is terminated before it registers is no part of the log: a
	// follower that saw it goes back a second time.
	resets, terminations := s.count(true), s.count(false)
	if most := resets + min(resets, terminations); told.rewinds > most {
		return fmt.Errorf("the follower was sent back %d times, after %d resets and %d terminations", told.rewinds, resets, terminations)
	}
	for i, e := range told.events {
		if i >= len(log) || !same(e, log[i]) {
			return fmt.Errorf("the follower was told %s %s as event %d, which is not in the log", e.Tag(), e.ID, i+1)
		}
	}
	return nil
}

func same(a, b event.Event) bool {
	if a.ID != b.ID || a.Tag() != b.Tag() {
		return false
	}
	x, err := a.MarshalJSON()
	if err != nil {
		return false
	}
	y, err := b.MarshalJSON()
	return err == nil && bytes.Equal(x, y)
}

// checkMessages compares what was sent with the log.
func (s *story) checkMessages(log []event.Event) error {
	var problems []error
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	sent := map[string]int{}
	var want []string // those that are there in order
	for i, m := range s.sent {
		sent[m.key] = i
		if s.expect(i).inOrder {
			want = append(want, m.key)
		}
	}
	var got []string
	taken, rejected, files := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for i, e := range log {
		switch body := e.Body.(type) {
		case event.UserMessage:
			n, ok := sent[e.ClientEventID]
			if !ok || s.sent[n].content != sha256.Sum256([]byte(body.Content)) {
				wrong("%s says %q as %s, which was not sent", e.ID, event.Redact(body.Content, 60), e.ClientEventID)
				continue
			}
			m, expected := s.sent[n], s.expect(n)
			switch {
			case taken[m.key]:
				wrong("message %s is doubled as %s", m.key, e.ID)
			case m.outcome == lost:
				wrong("message %s is %s, though its sender was told that it is lost", m.key, e.ID)
			case m.outcome == refused:
				wrong("message %s is %s, though its sender was told that it is refused", m.key, e.ID)
			case expected.at != "" && expected.at != e.ID:
				wrong("message %s is %s, though its sender was told that it is %s", m.key, e.ID, expected.at)
			case m.file != "" && (i == 0 || log[i-1].ClientEventID != fileID(m.key)):
				wrong("message %s is %s without its attachment", m.key, e.ID)
			}
			taken[m.key] = true
			if expected.inOrder {
				got = append(got, m.key)
			}
		case event.FileAttachment:
			n, ok := sent[strings.TrimSuffix(e.ClientEventID, fileID(""))]
			switch {
			case !ok || string(s.sent[n].file) != body.Source.Ref:
				wrong("%s is an attachment %s, which was not sent", e.ID, e.ClientEventID)
			case files[e.ClientEventID]:
				wrong("attachment %s is doubled as %s", e.ClientEventID, e.ID)
			}
			files[e.ClientEventID] = true
		case event.InputRejected:
			key := strings.TrimSuffix(e.ClientEventID, fileID(""))
			if _, ok := sent[key]; !ok || s.policy != event.PolicyReject {
				wrong("%s: input %s was refused: %s", e.ID, e.ClientEventID, body.Reason)
			}
			rejected[key] = true
		}
	}
	for i, m := range s.sent {
		switch {
		case s.expect(i).must && !taken[m.key] && !rejected[m.key]:
			wrong("message %s is lost", m.key)
		case m.outcome == recorded && !taken[m.key] && rejected[m.key]:
			wrong("message %s is refused, though its sender was told that it is %s", m.key, m.eventID)
		case m.outcome == refused && !rejected[m.key]:
			wrong("message %s was refused, and the log does not say so", m.key)
		}
	}
	if s.policy == event.PolicyReject {
		// Of a message that was stored, only the log says whether it was refused.
		want = slices.DeleteFunc(want, func(key string) bool { return !taken[key] })
	}
	if len(problems) == 0 && !slices.Equal(want, got) {
		wrong("the messages are not in the order in which they were sent")
	}
	return errors.Join(problems...)
}

// checkSessions makes sure that sessions end for no other reason than that their
// user closed or terminated them, or reset a run to a point at which it had not
// begun.
func (s *story) checkSessions(log []event.Event) error {
	ended, broken, isEnded := 0, 0, true
	for _, e := range log {
		switch e.Body.(type) {
		case event.SessionStarted:
			if !isEnded {
				broken++
			}
			isEnded = false
		case event.SessionEnded:
			ended++
			isEnded = true
		}
	}
	if terminated, reset := s.count(false), s.count(true); ended > s.closed || broken > terminated+reset {
		return fmt.Errorf("%d sessions ended and %d broke off, but the user closed %d, terminated %d and reset %d", ended, broken, s.closed, terminated, reset)
	}
	return nil
}

// checkRequests follows the life of each request: attempts in order, one end,
// and none beside another. Only after a reset an attempt may be recorded again, since
// Temporal delivers signals of the abandoned branch, which its result corrects.
func (s *story) checkRequests(log []event.Event) error {
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
			if body.Attempt < attempt || body.Attempt == attempt && s.count(true) == 0 {
				problems = append(problems, fmt.Errorf("%s is of attempt %d, after attempt %d", e.ID, body.Attempt, attempt))
			}
			attempt = body.Attempt
		case event.AssistantMessage:
			about(e, body.RequestID)
		case event.RequestEnd:
			end(e, body.Request())
		}
	}
	if running != "" {
		problems = append(problems, fmt.Errorf("request %s has no end", running))
	}
	return errors.Join(problems...)
}

// checkAnswers compares each answer with the newest message that its request had
// seen: what readers are told is what the model was shown.
func checkAnswers(log []event.Event) error {
	var problems []error
	for _, e := range log {
		body, ok := e.Body.(event.AssistantMessage)
		if !ok {
			continue
		}
		var message rig.Message
		for _, seen := range slices.Backward(log[:min(len(log), event.Counter(body.ThroughEventID))]) {
			if m, ok := seen.Body.(event.UserMessage); ok {
				message, _ = rig.ParseMessage(m.Content) // the client wrote it
				break
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
func (s *story) checkRest(log []event.Event) error {
	l := s.ledger()
	for _, e := range log {
		l.note(e)
	}
	if !l.rests() {
		return errors.New("a message has neither an answer nor a reason for having none")
	}
	return nil
}

// checkState compares the state of the session, from which the model is shown the
// conversation, with what the log amounts to. The log may have grown since.
func checkState(name string, log []event.Event, state wire.State) error {
	if state.EventCount > len(log) {
		return fmt.Errorf("the session has %d events, and the log %d", state.EventCount, len(log))
	}
	want := wire.StateOf(reducer.Load(name, reducer.Reduce, log[:state.EventCount]...), state.UpdatedAt)
	x, err := wire.JSON(want)
	if err != nil {
		return err
	}
	y, err := wire.JSON(state)
	if err != nil {
		return err
	}
	if !bytes.Equal(x.Payload().GetData(), y.Payload().GetData()) {
		return fmt.Errorf("the session is not what its log amounts to:\n  session %s\n  log     %s",
			event.Redact(string(y.Payload().GetData()), 2000), event.Redact(string(x.Payload().GetData()), 2000))
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
