package activities

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/worker"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/hook"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// end returns the outcome of an attempt that did not complete its steps: an error if it was not sent and Temporal
// shall repeat it.
func (g *generation) end(ctx context.Context, p prepared, r answered) (reducer.AttemptEnded, error) {
	result := g.outcome(ctx, p, r)
	isUnsent, isLast := !g.life.isSent(), int(g.info.Attempt) >= g.in.MaxAttempts
	switch {
	case !isUnsent:
	case p.overflow != nil && r.err == nil:
		result.Outcome, result.Overflow = reducer.TooLong, p.overflow
	case result.Outcome == reducer.Interrupted:
		result.Outcome = reducer.Withdrawn
	case result.Outcome == reducer.HandedBack && !isLast:
		return result, retried("handed-back", errShutdown.Error(), time.Millisecond)
	case result.Outcome == reducer.Failed && result.Retryable && !isLast:
		return result, retried(string(result.Kind), result.Error, milliseconds(result.RetryAfterMs))
	case result.Outcome == reducer.Failed:
		result.Final = result.Retryable
	}
	return result, nil
}

// conclude returns the result of an attempt that was sent, with the answer as the hooks left it.
func (g *generation) conclude(ctx context.Context, p prepared, r answered) reducer.AttemptEnded {
	if refusal := p.guard.failure(); refusal != nil {
		return g.withoutAnswer(ctx, p, r.Usage, refusal)
	}
	result := g.outcome(ctx, p, r)
	isEmpty := result.Outcome == reducer.Interrupted && result.Text == "" && result.Reasoning == ""
	if isEmpty || result.Outcome == reducer.Failed || result.Outcome == reducer.HandedBack || !g.checksAnswers() {
		return result
	}
	response := hook.Response{Text: result.Text, Reasoning: result.Reasoning, Partial: result.Outcome == reducer.Interrupted}
	for _, c := range result.Calls {
		response.Calls = append(response.Calls, hook.Call{Name: c.Name, Arguments: c.Arguments, Error: c.Error})
	}
	checked, err := p.guard.after(ctx, response)
	if err != nil {
		return g.withoutAnswer(ctx, p, r.Usage, g.timedOut(ctx, p, err))
	}
	result.Hooks = p.guard.reported()
	if checked.Text != response.Text {
		result.Text, _ = truncate(checked.Text, event.MaxAnswerBytes, wire.MaxEventBytes-envelopeBytes)
		result.Reasoning, result.ProviderState = "", nil
	}
	return result
}

// withoutAnswer returns the result of an attempt whose answer a hook refused or failed to check.
func (g *generation) withoutAnswer(ctx context.Context, p prepared, usage event.Usage, err error) reducer.AttemptEnded {
	result := g.outcome(ctx, p, answered{Answer: Answer{Usage: usage}, err: err})
	if result.Outcome == reducer.Interrupted {
		p.guard.refuseUnchecked()
		result.Hooks = p.guard.reported()
	}
	return result
}

// outcome returns the result of an attempt as if it was sent.
func (g *generation) outcome(ctx context.Context, p prepared, r answered) reducer.AttemptEnded {
	result := reducer.AttemptEnded{
		ProviderID: p.providerID, Model: p.modelName, Usage: r.Usage, FinishReason: r.FinishReason,
		Omitted: p.omitted, Hooks: p.guard.reported(), Offered: p.tools.recorded,
	}
	if !p.dueAt.IsZero() {
		result.DurationMs = time.Since(p.dueAt).Milliseconds()
	}
	var stop stopped
	switch cause := context.Cause(ctx); {
	case r.err == nil:
		complete(ctx, &result, p, r.Answer)
	case errors.As(cause, &stop):
		interrupt(&result, p, r.Answer, stop.reason)
	case errors.Is(r.err, errTooLong):
		complete(ctx, &result, p, r.Answer)
	case errors.Is(cause, errShutdown) || errors.Is(cause, worker.ErrWorkerShutdown):
		result.Outcome = reducer.HandedBack
	case cause != nil && !errors.Is(cause, errTimeout):
		interrupt(&result, p, r.Answer, event.ReasonCancelled) // the workflow cancelled it, or nobody waits for it
	default:
		g.fail(&result, p, r)
	}
	return result
}

func complete(ctx context.Context, result *reducer.AttemptEnded, p prepared, answer Answer) {
	result.Outcome = reducer.Completed
	room, isCut := setText(result, answer.Text)
	if !isCut {
		result.ProviderState, room = fittingState(answer.State, room)
		if len(answer.Calls) > 0 {
			result.Outcome, result.Calls = reducer.Called, p.tools.called(ctx, answer.Calls)
		}
		if len(answer.Calls) > len(result.Calls) {
			result.ProviderState = nil // it is valid only with all calls
		}
	}
	result.Reasoning = kept(p, answer.Reasoning, room)
}

func interrupt(result *reducer.AttemptEnded, p prepared, answer Answer, reason event.Reason) {
	result.Outcome, result.Reason = reducer.Interrupted, reason
	room, _ := setText(result, answer.Text)
	result.Reasoning = kept(p, answer.Reasoning, room)
}

// setText sets the text of an answer, and returns the room for what is recorded beside it.
func setText(result *reducer.AttemptEnded, text string) (room int, isCut bool) {
	result.Text, isCut = truncate(text, event.MaxAnswerBytes, wire.MaxEventBytes)
	if isCut {
		result.FinishReason = "length" // also after an error: the last delta may have exceeded the limit
	}
	return wire.MaxEventBytes - envelopeBytes - jsonSize(result.Text), isCut
}

// fail describes a failure. A timeout with text is an interruption.
func (g *generation) fail(result *reducer.AttemptEnded, p prepared, r answered) {
	result.Outcome = reducer.Failed
	result.Kind, result.Retryable, result.Error = event.FailureUnavailable, true, event.Redact(r.err.Error(), reducer.MaxAttemptError)
	var failed *ModelError
	if !errors.As(r.err, &failed) {
		return
	}
	result.Kind, result.Retryable, result.Final = cmp.Or(failed.Failure, result.Kind), failed.Retryable, failed.Final && failed.Retryable
	result.Error, result.RetryAfterMs, result.Suspects = g.errorText(p, failed), failed.RetryAfter.Milliseconds(), failed.Suspects
	result.Overflow = r.refused
	var refused *exceededError
	if errors.As(r.err, &refused) {
		result.Exceeded = &refused.BudgetExceeded
	}
	if failed.Repair != nil && g.in.Repair == nil {
		result.Repair, result.Retryable = g.recordable(*failed.Repair), true
	}
	isTimeout := errors.Is(r.err, context.DeadlineExceeded) || errors.Is(r.err, errTimeout)
	if isTimeout && r.Text != "" {
		interrupt(result, p, r.Answer, event.ReasonTimeout)
	}
}

func (g *generation) errorText(p prepared, failed *ModelError) string {
	text := failed.Error()
	switch {
	case failed.Answer == "":
	case g.checksAnswers():
		text = fmt.Sprintf("%s: %s: %s", p.providerID, failed.Kind, uncheckedProblem)
	default:
		text += fmt.Sprintf(" (the answer: %s)", event.Redact(strings.Join(strings.Fields(failed.Answer), " "), maxExcerpt))
	}
	if failed.RetryAfter > 0 {
		text += fmt.Sprintf(" (the provider asks to wait %v)", failed.RetryAfter.Round(time.Millisecond))
	}
	return event.Redact(text, reducer.MaxAttemptError)
}

const (
	maxExcerpt = 400 // bytes of an invalid answer in an error
	// maxRepairAnswer bounds the answer in a repair, in bytes: the history contains it twice.
	maxRepairAnswer = 32 << 10
	// uncheckedProblem replaces the problem of an answer that hooks check: a problem can quote the answer.
	uncheckedProblem = "it does not have the response format"
)

// recordable returns what the history may contain of a repair.
func (g *generation) recordable(r reducer.Repair) *reducer.Repair {
	if g.checksAnswers() {
		r = reducer.Repair{Problem: uncheckedProblem}
	}
	if len(r.Answer) > maxRepairAnswer {
		r.Answer = ""
	}
	return &r
}

// truncate bounds the length of a text, and the size of its JSON, in bytes.
func truncate(text string, limit, jsonLimit int) (_ string, isCut bool) {
	if jsonSize(text) > jsonLimit {
		limit = min(limit, max(0, jsonLimit/6)) // escapes take up to six bytes per byte
	}
	if len(text) <= limit {
		return text, false
	}
	return strings.ToValidUTF8(text[:limit], ""), true
}

// jsonSize returns the size of a text in JSON: 0 if it is empty, since the field is then omitted.
func jsonSize(text string) int {
	if text == "" {
		return 0
	}
	data, err := json.Marshal(text)
	if err != nil {
		return 6 * len(text)
	}
	return len(data)
}

// envelopeBytes is reserved for other fields of the event, such as names in the provider state.
const envelopeBytes = 8 << 10

// maxReasoningSummary bounds the reasoning that [event.ReasoningSummary] keeps, in bytes.
const maxReasoningSummary = 16 << 10

// kept returns the part of the reasoning that the context keeps, with at most room bytes of JSON.
func kept(p prepared, reasoning string, room int) string {
	limit := maxReasoningSummary
	switch p.request.Settings.Reasoning {
	case event.ReasoningOff:
		return ""
	case event.ReasoningFull:
		limit = event.MaxReasoningBytes
	}
	const more = "…"
	text, isCut := truncate(reasoning, limit-len(more), room-len(more))
	if isCut && text != "" {
		text += more
	}
	return text
}

// fittingState returns the state and the remaining room. It drops a state that is invalid or exceeds
// the room: a truncated state is useless.
func fittingState(state *event.ProviderState, room int) (*event.ProviderState, int) {
	if state == nil || state.Validate() != nil || len(state.Data) > room {
		return nil, room
	}
	return state, room - len(state.Data)
}
