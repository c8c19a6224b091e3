package aisdk

import (
	"fmt"
	"slices"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
	"github.com/seed-9ed7edd4/chronicle/gateway/thread"
)

// reply is the stream of one answer: to events that were sent, or the one that runs.
type reply struct {
	thread  thread.Thread
	writer  writer
	id      string                                 // of the message; "": the first that answers the event after
	sent    []string                               // client event ids that the log does not have yet
	after   int                                    // counter of the newest sent event that requires an answer
	resumes bool                                   // the answers to messages up to from follow
	queued  int                                    // counter of the newest of these
	from    int                                    // counter of the event up to which nothing is written
	waiting func(calls []string) (ofPage []string) // selects the calls that wait for the page
	failure string                                 // why there will be no answer; "": there may be one
}

func (r *reply) apply(item gateway.Item) {
	e := item.Event
	r.thread.Apply(item)
	i := slices.Index(r.sent, e.ClientEventID)
	switch body := e.Body.(type) {
	case event.InputRejected:
		if i >= 0 {
			r.failure = body.Reason
		}
	case event.SessionEnded:
		if r.after > 0 && r.message() == nil {
			r.failure = "the session ended before the answer"
		}
	}
	isSent := i >= 0 && e.ClientEventID != ""
	if isSent {
		r.sent = slices.Delete(r.sent, i, i+1)
	}
	switch n := event.Counter(e.ID); {
	case !event.RequiresAnswer(e.Body):
	case isSent:
		r.after = n
	case r.resumes && n <= r.from:
		r.queued = n
	}
}

// flush returns the chunks since the previous call, and whether they are the last.
func (r *reply) flush() (chunks []chunk, isLast bool) {
	w := &r.writer
	w.chunks = nil
	var m *message
	isCurrent := r.thread.Last >= r.from
	if isCurrent {
		m = r.message()
	}
	switch {
	case isCurrent && m == nil && r.id != "":
		r.failure = "the chat has no answer " + r.id + " (load its messages again)"
	case r.failure == "" && (len(r.sent) > 0 || m == nil):
		return nil, false
	}
	if r.failure == "" && !w.isBegun {
		if same := w.same(m.Parts); slices.ContainsFunc(w.has[same:], func(p part) bool { return p.Type == typeStep }) {
			r.failure = fmt.Sprintf("message %s: part %d differs from the log (load the messages again)", m.ID, same+1)
		}
	}
	if r.failure != "" {
		w.add("error", "errorText", r.failure)
		return w.chunks, true
	}
	r.id = m.ID
	m.settle(r.waiting)
	w.update(m)
	isEnded := m.request.IsEnded
	isLast = isEnded || m.waits()
	if isLast {
		w.finish(m)
	}
	if chunks = w.chunks; isLast && r.queued > m.request.Through && isEnded && m.failure == "" {
		r.id, r.after, r.writer = "", r.queued, writer{version: w.version}
		return chunks, false
	}
	return chunks, isLast
}

// message returns the answer; nil if the log does not show it yet.
func (r *reply) message() *message {
	if of := r.thread.Request(r.id); of != nil {
		return answerMessage(of)
	}
	for _, of := range r.thread.Requests {
		if r.id == "" && r.after > 0 && of.Through >= r.after {
			return answerMessage(of)
		}
	}
	return nil
}
