package evaluate

import (
	"strings"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
)

// Question is a recorded answer, and the place of the request that it answered.
type Question struct {
	ContextName string           `json:"contextName"`
	Answer      string           `json:"answerEventId"`
	Through     string           `json:"throughEventId"` // the newest event in the request
	Text        string           `json:"question"`       // the input since the answer before, for people
	Recorded    client.Evaluated `json:"recorded"`
}

// key identifies the question among those of all contexts.
func (q Question) key() string { return q.ContextName + "/" + q.Answer }

// QuestionsOf returns the complete answers of a log. An imported answer, which no request of the context produced, counts
// if it follows a message of a user or the result of a tool.
func QuestionsOf(contextName string, log []event.Event) []Question {
	r := recording{contextName: contextName, requests: map[string]request{}, answers: map[string]*Question{}}
	for _, e := range log {
		r.take(e)
		r.last = e.ID
	}
	var questions []Question
	for _, q := range r.questions {
		if q.Recorded.Text != "" || len(q.Recorded.Calls) > 0 {
			questions = append(questions, *q)
		}
	}
	return questions
}

type recording struct {
	contextName string
	questions   []*Question
	answers     map[string]*Question // by the id of the answer
	requests    map[string]request   // by id
	input       []string             // since the newest answer
	last        string               // id of the event before
}

// request is the newest attempt of a request, and the question that its answer became.
type request struct {
	event.LLMRequestStarted
	eventID  string
	question *Question
}

func (r *recording) take(e event.Event) {
	switch body := e.Body.(type) {
	case event.UserMessage:
		r.input = append(r.input, body.Content)
	case event.ToolResult:
		result := body.Value
		if body.IsError || len(body.Error) > 0 {
			result = body.Error
		}
		r.input = append(r.input, "[result of "+body.ToolCallID+"] "+string(result))
	case event.LLMRequestStarted:
		if body.Purpose == "" {
			r.requests[body.RequestID] = request{LLMRequestStarted: body, eventID: e.ID}
		}
	case event.AssistantMessage:
		r.takeAnswer(e.ID, body)
	case event.ToolCall:
		q := r.answers[body.MessageID]
		if body.MessageID == "" && len(r.questions) > 0 {
			q = r.questions[len(r.questions)-1]
		}
		if q != nil {
			q.Recorded.Calls = append(q.Recorded.Calls, client.EvaluatedCall{Name: body.ToolName, Arguments: body.Parameters})
		}
	case event.LLMAttemptEnded:
		if body.Outcome == event.AttemptToolCalls {
			r.end(body.RequestID, body.Usage, body.DurationMs, "tool_calls")
		}
	case event.LLMRequestCompleted:
		r.end(body.RequestID, body.Usage, body.DurationMs, body.FinishReason)
	}
}

func (r *recording) takeAnswer(id string, body event.AssistantMessage) {
	asked, isRequested := r.requests[body.RequestID]
	through := asked.eventID
	if body.RequestID == "" && len(r.input) > 0 {
		through = r.last
	}
	input := r.input
	r.input = nil
	if through == "" || body.Partial {
		return
	}
	q := &Question{
		ContextName: r.contextName, Answer: id, Through: through, Text: strings.Join(input, "\n\n"),
		Recorded: client.Evaluated{ProviderID: asked.ProviderID, Model: asked.Model, Text: body.Content},
	}
	r.questions = append(r.questions, q)
	r.answers[id] = q
	if isRequested {
		asked.question = q
		r.requests[body.RequestID] = asked
	}
}

// end adds what the end of an attempt records about its answer.
func (r *recording) end(requestID string, usage event.Usage, durationMs int64, finish string) {
	if q := r.requests[requestID].question; q != nil {
		q.Recorded.Usage, q.Recorded.DurationMs, q.Recorded.FinishReason = usage, durationMs, finish
	}
}
