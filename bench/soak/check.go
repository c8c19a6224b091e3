package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/bench/rig"
	"github.com/seed-9ed7edd4/chronicle/bench/soak/agent"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

// check returns the violations of a log; see the package comment.
func (j *journal) check(log []event.Event, followed view, state wire.State) error {
	return errors.Join(
		checkChain(j.name, log),
		j.checkFollowed(log, followed),
		j.checkMessages(log),
		j.checkSessions(log),
		j.checkRequests(log),
		checkAnswers(log),
		j.checkCalls(log),
		checkHooks(log),
		checkUsage(log, state),
		j.checkIdle(log),
		checkState(j.name, log, state),
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

// The log may have grown since the follower read it.
func (j *journal) checkFollowed(log []event.Event, followed view) error {
	// A run that was terminated after a reset, before it registered in the archive, is not part of the
	// log. A follower that saw it is rewound a second time.
	resets, terminations := j.count(true), j.count(false)
	if most := resets + min(resets, terminations); followed.rewinds > most {
		return fmt.Errorf("the follower was rewound %d times, after %d resets and %d terminations", followed.rewinds, resets, terminations)
	}
	for i, e := range followed.events {
		if i >= len(log) {
			return fmt.Errorf("the follower received %s %s as event %d, which is not in the log", e.Tag(), e.ID, i+1)
		}
		if !same(e, log[i]) {
			received, _ := e.MarshalJSON() // it was decoded from JSON
			recorded, _ := log[i].MarshalJSON()
			return fmt.Errorf("the follower received %s %s as event %d, which is not in the log:\n  received %s\n  the log  %s", e.Tag(), e.ID, i+1, received, recorded)
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

func (j *journal) checkMessages(log []event.Event) error {
	var problems []error
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	sent := map[string]int{}
	var want []string // keys in the order sent
	for i, m := range j.sent {
		sent[m.key] = i
		if j.expect(i).inOrder {
			want = append(want, m.key)
		}
	}
	var got []string
	found, rejections, files := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for i, e := range log {
		switch body := e.Body.(type) {
		case event.UserMessage, event.ApprovalDecided, event.ToolResult:
			if e.ClientEventID == "" {
				continue // the result of a worker
			}
			n, ok := sent[e.ClientEventID]
			if !ok || j.sent[n].content != contentHash(body) {
				wrong("%s is the message %q with key %s, which was not sent", e.ID, event.Redact(contentOf(body), 60), e.ClientEventID)
				continue
			}
			m, expected := j.sent[n], j.expect(n)
			switch {
			case found[m.key]:
				wrong("message %s is duplicated as %s", m.key, e.ID)
			case m.outcome == lost:
				wrong("message %s is %s, but it was reported as lost", m.key, e.ID)
			case expected.mustNot:
				wrong("message %s is %s, but it was reported as rejected", m.key, e.ID)
			case expected.at != "" && expected.at != e.ID:
				wrong("message %s is %s, but it was reported as %s", m.key, e.ID, expected.at)
			case m.file != "" && (i == 0 || log[i-1].ClientEventID != fileID(m.key)):
				wrong("message %s is %s without its attachment", m.key, e.ID)
			}
			found[m.key] = true
			if expected.inOrder {
				got = append(got, m.key)
			}
		case event.FileAttachment:
			n, ok := sent[strings.TrimSuffix(e.ClientEventID, fileID(""))]
			switch {
			case !ok || string(j.sent[n].file) != body.Source.Ref:
				wrong("%s is attachment %s, which was not sent", e.ID, e.ClientEventID)
			case files[e.ClientEventID]:
				wrong("attachment %s is duplicated as %s", e.ClientEventID, e.ID)
			}
			files[e.ClientEventID] = true
		case event.InputRejected:
			key := strings.TrimSuffix(e.ClientEventID, fileID(""))
			if n, ok := sent[key]; !ok || !reducer.RuleOf(j.policy).Rejects && !j.sent[n].answers {
				wrong("%s: input %s was rejected: %s", e.ID, e.ClientEventID, body.Reason)
			}
			rejections[key] = true
		}
	}
	for i, m := range j.sent {
		expected := j.expect(i)
		switch {
		case expected.must && !found[m.key] && !rejections[m.key]:
			wrong("message %s is lost", m.key)
		case expected.at != "" && !found[m.key] && rejections[m.key]:
			wrong("message %s is rejected, but it was reported as %s", m.key, m.eventID)
		case m.outcome == rejected && expected.mustNot && !rejections[m.key]:
			wrong("message %s was rejected, but the log has no rejection", m.key)
		}
	}
	if reducer.RuleOf(j.policy).Rejects {
		// Only the log tells whether a stored message was rejected.
		want = slices.DeleteFunc(want, func(key string) bool { return !found[key] })
	}
	if len(problems) == 0 && !slices.Equal(want, got) {
		wrong("the messages are not in the order sent")
	}
	return errors.Join(problems...)
}

// contentOf returns what identifies the content of an input.
func contentOf(body event.Body) string {
	switch body := body.(type) {
	case event.UserMessage:
		return body.Content
	case event.ApprovalDecided:
		return fmt.Sprintf("%s %s %s", body.Decision, body.ToolCallID, body.Parameters)
	case event.ToolResult:
		return fmt.Sprintf("result of %s: %s %s", body.ToolCallID, body.Value, body.Error)
	}
	return ""
}

func contentHash(body event.Body) [sha256.Size]byte { return sha256.Sum256([]byte(contentOf(body))) }

// checkSessions returns an error if a session ended without its user closing or terminating
// it, or resetting its run to its first workflow task.
func (j *journal) checkSessions(log []event.Event) error {
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
	if terminated, reset := j.count(false), j.count(true); ended > j.closed || broken > terminated+reset {
		return fmt.Errorf("%d sessions ended and %d were cut off, but the user closed %d, terminated %d and reset %d", ended, broken, j.closed, terminated, reset)
	}
	return nil
}

// checkRequests checks that the attempts of each request are in order, that it ends once, and
// that no requests overlap. After a reset, two starts of an attempt may have the same number:
// one is recorded for a signal of the abandoned branch, which Temporal delivers again, the other for the
// result of the new attempt.
func (j *journal) checkRequests(log []event.Event) error {
	var problems []error
	running, attempt, ended := "", 0, map[string]bool{}
	belongs := func(e event.Event, id string) {
		switch {
		case ended[id]:
			problems = append(problems, fmt.Errorf("%s belongs to request %s, which has ended", e.ID, id))
		case running != "" && running != id:
			problems = append(problems, fmt.Errorf("%s belongs to request %s, but %s is running", e.ID, id, running))
		case running == "":
			running, attempt = id, 0
		}
	}
	end := func(e event.Event, id string) {
		belongs(e, id)
		running, ended[id] = "", true
	}
	for _, e := range log {
		switch body := e.Body.(type) {
		case event.LLMRequestStarted:
			belongs(e, body.RequestID)
			if body.Attempt < attempt || body.Attempt == attempt && j.count(true) == 0 {
				problems = append(problems, fmt.Errorf("%s is of attempt %d, after attempt %d", e.ID, body.Attempt, attempt))
			}
			attempt = body.Attempt
		case event.AssistantMessage:
			belongs(e, body.RequestID)
		case event.RequestEnd:
			end(e, body.Request())
		}
	}
	if running != "" {
		problems = append(problems, fmt.Errorf("request %s has no end", running))
	}
	return errors.Join(problems...)
}

// checkAnswers compares each answer with the newest message that its request included, and its calls
// with the script of the message.
func checkAnswers(log []event.Event) error {
	var problems []error
	steps := map[string]int{} // answers with calls, by message
	for i, e := range log {
		body, ok := e.Body.(event.AssistantMessage)
		if !ok {
			continue
		}
		message := newestMessage(log, body.ThroughEventID)
		wrong := func(format string, args ...any) {
			problems = append(problems, fmt.Errorf("%s to message %q: %s", e.ID, message.Key, fmt.Sprintf(format, args...)))
		}
		text, isChecked := strings.CutPrefix(body.Content, agent.Checked)
		if isChecked != (message.Script.Hook == agent.ChangesAnswer) {
			wrong("checked by a hook: %v", isChecked)
		}
		if agent.RefusesText(message.Script.Hook) {
			wrong("a hook has refused all answers")
		}
		key, tokens := rig.Answered(text)
		want := message.Tokens
		if calls := callsOf(log[i+1:], e.ID); len(calls) > 0 {
			want = 1
			if n := steps[key]; n >= len(message.Script.Steps) || !slices.EqualFunc(calls, message.Script.Steps[n], isScripted) {
				wrong("the calls of step %d differ from its script", n+1)
			}
			steps[key]++
		}
		if key != message.Key || !body.Partial && tokens != want || tokens > want {
			wrong("it answers %q with %d tokens (partial: %v), want %q with %d", key, tokens, body.Partial, message.Key, want)
		}
	}
	return errors.Join(problems...)
}

// newestMessage returns the newest message up to an event.
func newestMessage(log []event.Event, throughEventID string) (message rig.Message) {
	for _, seen := range slices.Backward(log[:min(len(log), event.Counter(throughEventID))]) {
		if m, ok := seen.Body.(event.UserMessage); ok {
			message, _ = rig.ParseMessage(m.Content) // valid, sent by the user
			break
		}
	}
	return message
}

func (j *journal) checkIdle(log []event.Event) error {
	p := j.progress()
	for _, e := range log {
		p.add(e)
	}
	if !p.isIdle() {
		return errors.New("a message has neither an answer nor a reason for having none")
	}
	return nil
}

// checkState compares the state of the session with the fold of the log, which may have grown
// since.
func checkState(name string, log []event.Event, state wire.State) error {
	if state.EventCount > len(log) {
		return fmt.Errorf("the session has %d events, but the log has %d", state.EventCount, len(log))
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
		return fmt.Errorf("the session state is not the fold of the log:\n  session %s\n  log     %s",
			event.Redact(string(y.Payload().GetData()), 2000), event.Redact(string(x.Payload().GetData()), 2000))
	}
	return nil
}

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
