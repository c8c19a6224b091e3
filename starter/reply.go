package main

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/starter/show"
)

// reply is the outcome of a question. Fields that the log does not contain are zero.
type reply struct {
	Answer string `json:"answer"`
	// Problem is why the answer is missing or incomplete; empty for a complete answer.
	Problem      string `json:"problem,omitempty"`
	InputTokens  int    `json:"inputTokens,omitempty"`
	OutputTokens int    `json:"outputTokens,omitempty"`
	DurationMs   int64  `json:"durationMs,omitempty"`
}

// replyTo finds the reply to the user message at index i of a log. Messages answered together
// share a reply.
func replyTo(log []event.Event, i int) reply {
	asked := event.Counter(log[i].ID)
	isReply := func(through string) bool { return event.Counter(through) >= asked }
	var r reply
	requestID, started := "", "" // of the answer, and of the newest attempt that included the message
	for _, e := range log[i+1:] {
		switch body := e.Body.(type) {
		case event.LLMRequestStarted:
			if isReply(body.ThroughEventID) {
				started = body.RequestID
			}
		case event.AssistantMessage:
			if body.RequestID == "" {
				return reply{Answer: body.Content} // imported answers have no request
			}
			switch {
			case requestID == "" && isReply(body.ThroughEventID):
				r.Answer, requestID = body.Content, body.RequestID
			case body.RequestID == requestID && r.Answer != "" && body.Content != "":
				r.Answer += "\n\n" + body.Content // after tool calls
			case body.RequestID == requestID:
				r.Answer += body.Content
			}
		case event.LLMAttemptEnded:
			if body.RequestID == requestID && body.Outcome == event.AttemptToolCalls {
				r.InputTokens, r.OutputTokens, r.DurationMs = r.InputTokens+body.InputTokens, r.OutputTokens+body.OutputTokens, r.DurationMs+body.DurationMs
			}
		case event.LLMRequestCompleted:
			if body.RequestID == requestID {
				r.InputTokens, r.OutputTokens, r.DurationMs = r.InputTokens+body.InputTokens, r.OutputTokens+body.OutputTokens, r.DurationMs+body.DurationMs
				return r
			}
		case event.RequestEnd:
			isEnd := body.Request() == requestID || requestID == "" && isReply(body.Unanswered())
			if requestID == "" && body.Request() == started && !isSuperseded(body) {
				isEnd = true
			}
			if isEnd {
				r.Problem = show.Note(body)
				return r
			}
		}
	}
	if requestID == "" {
		r.Problem = "no answer"
	}
	return r
}

// isSuperseded reports whether the next request answers the same messages.
func isSuperseded(end event.RequestEnd) bool {
	body, ok := end.(event.LLMRequestInterrupted)
	return ok && body.Reason == event.ReasonNewUserInput
}

func (r reply) costs() string {
	var parts []string
	if r.InputTokens > 0 || r.OutputTokens > 0 {
		parts = append(parts, fmt.Sprintf("%d tokens in, %d out", r.InputTokens, r.OutputTokens))
	}
	if r.DurationMs > 0 {
		parts = append(parts, (time.Duration(r.DurationMs) * time.Millisecond).String())
	}
	return strings.Join(parts, ", ")
}

func (r reply) text() string {
	text := r.Answer
	for _, more := range []string{r.Problem, r.costs()} {
		if more != "" {
			text += "\n[" + more + "]"
		}
	}
	return strings.TrimPrefix(text, "\n")
}

func (r *reply) add(other reply) {
	r.InputTokens += other.InputTokens
	r.OutputTokens += other.OutputTokens
	r.DurationMs += other.DurationMs
}

// question is a turn to ask again: all inputs since the previous turn, the last of which
// requests an answer.
type question struct {
	inputs []event.Event
	reply  reply
}

func (q question) text() string {
	text := ""
	for _, e := range q.inputs {
		switch body := e.Body.(type) {
		case event.FileAttachment:
			text += "[" + show.Note(body) + "]\n"
		case event.UserMessage:
			text += body.Content + "\n"
		}
	}
	return cmp.Or(strings.TrimSpace(text), "(empty)")
}

// questionsOf returns the turns of a log, each with the settings changed before it, except
// those that skip selects. It reads up to the event whose counter is through; 0: all events.
func questionsOf(log []event.Event, skip func(event.Body) bool, through int) []question {
	var questions []question
	var inputs []event.Event
	for i, e := range log {
		if through > 0 && event.Counter(e.ID) > through {
			break
		}
		switch body := e.Body.(type) {
		case event.SystemPrompt, event.FileAttachment, event.SetRetryConfig, event.SetProviderConfig, event.SetTimeout, event.SetDeliveryPolicy,
			event.SetRequestSettings, event.SetTools, event.BudgetSet, event.SetCompaction:
			if !skip(body) {
				inputs = append(inputs, event.New(body))
			}
		case event.UserMessage:
			inputs = append(inputs, event.New(body))
			if body.Triggers() {
				questions = append(questions, question{inputs, replyTo(log, i)})
				inputs = nil
			}
		}
	}
	return questions
}
