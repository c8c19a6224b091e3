package activities

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/tracing"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// MaxEvaluations bounds the attempts of [Activities.Evaluate].
const MaxEvaluations = 8

const unlimitedTokens = 1_000_000_000_000

// Evaluate sends the request of a recorded answer to a model and returns the new answer. Nothing is recorded or published,
// and no tool is called. Hooks and the budgets of labels apply as in [Activities.Generate]; that of the context does not.
// An error is one that Temporal retries, after the delay that the provider asks for, or about an invalid input.
func (a *Activities) Evaluate(ctx context.Context, in wire.Evaluation) (wire.Evaluated, error) {
	reading, stop := withHeartbeats(ctx)
	session, tools, err := a.recordedRequest(reading, in)
	stop()
	if err != nil {
		return wire.Evaluated{}, err
	}
	// The copy knows the session, offers the recorded tools, and publishes nothing.
	quiet := *a
	quiet.options.Sessions, quiet.options.Tools, quiet.options.Stream = NewSessions(), recordedTools(tools), nil
	g := &generation{
		Activities: &quiet, info: activity.GetInfo(ctx), startedAt: time.Now(), trace: tracing.Traceparent(ctx),
		measured: &measurement{Metrics: a.metrics},
		in: AttemptInput{
			ContextName: in.ContextName, MaxAttempts: MaxEvaluations,
			StartAttempt: reducer.StartAttempt{
				RequestID: session.Request.ID, Attempt: 1,
				Through: session.LastEventID(), ThroughAt: session.LastEventAt, TimeoutMs: session.Reduced.Config.TimeoutMs,
			},
		},
	}
	defer quiet.options.Sessions.Put(g.info.WorkflowExecution.RunID, g.in.RequestID, g.in.Attempt, session)()
	ctx, g.life = a.startLife(ctx, g.info, g.trace)
	defer g.life.end()
	result, err := g.run(ctx)
	g.measured.ended(g.in, result)
	isLast := int(g.info.Attempt) >= MaxEvaluations
	switch {
	case err != nil:
		return wire.Evaluated{}, err
	case result.Outcome == reducer.HandedBack && !isLast:
		return wire.Evaluated{}, retried("handed-back", errShutdown.Error(), time.Millisecond)
	case result.Outcome == reducer.Failed && result.Retryable && !result.Final && result.Repair == nil && !isLast:
		return wire.Evaluated{}, retried(string(result.Kind), result.Error, milliseconds(result.RetryAfterMs))
	}
	return evaluatedOf(result), nil
}

func evaluatedOf(result reducer.AttemptEnded) wire.Evaluated {
	out := wire.Evaluated{
		ProviderID: result.ProviderID, Model: result.Model, Text: result.Text, FinishReason: result.FinishReason,
		DurationMs: result.DurationMs, Usage: result.Usage,
	}
	for _, c := range result.Calls {
		out.Calls = append(out.Calls, wire.EvaluatedCall{Name: c.Name, Arguments: c.Arguments, Error: c.Error})
	}
	if result.Outcome != reducer.Completed && result.Outcome != reducer.Called {
		out.Error = cmp.Or(result.Error, string(result.Reason), "no answer: "+string(result.Outcome))
	}
	return out
}

// recordedRequest returns the session in which a recorded answer was requested, with the changes of the evaluation, and
// the tools of the worker that were offered.
func (a *Activities) recordedRequest(ctx context.Context, in wire.Evaluation) (session reducer.Session, tools []Tool, err error) {
	if err := event.ValidateContextName(in.ContextName); err != nil {
		return session, nil, invalidEvaluation(err)
	}
	through, answer := event.Counter(in.Through), event.Counter(in.Answer)
	var events []event.Event
	var offered event.ToolsOffered // recorded after the request and before the answer
	for e, err := range a.log.Events(ctx, in.ContextName, "") {
		if err != nil {
			return session, nil, retried("log", event.Redact(err.Error(), reducer.MaxAttemptError), 0)
		}
		counter := event.Counter(e.ID)
		if counter <= through {
			events = append(events, e)
		}
		if body, ok := e.Body.(event.ToolsOffered); ok && counter <= answer {
			offered = body
		}
		if counter >= answer {
			break
		}
	}
	session = reducer.Load(in.ContextName, a.options.Reduce, events...)
	if session.LastEventID() != in.Through {
		return session, nil, invalidEvaluation(fmt.Errorf("evaluate %s of context %s: the log ends with event %q", in.Through, in.ContextName, session.LastEventID()))
	}
	isFallback := restoreRequest(&session, events)
	config := &session.Reduced.Config
	if isFallback && config.Fallback != nil {
		config.Primary = *config.Fallback
	}
	session.Offered, session.TriggerAt = nil, time.Time{}
	if config.Budget != nil {
		config.Budget = &event.Budget{Tokens: new(int64(unlimitedTokens))} // a budget bounds the length of answers
	}
	if config.Tools != nil && slices.Equal(offered.Patterns, config.Tools.Patterns()) {
		tools = toolsOf(offered.Tools)
	}
	if session.Reduced, err = a.changed(session, in); err != nil {
		return session, nil, invalidEvaluation(err)
	}
	return session, tools, nil
}

// restoreRequest sets what [reducer.Load] does not know of a running request: which messages wait for the end of the turn.
// It reports whether the request fell back. An imported answer has no request.
func restoreRequest(s *reducer.Session, events []event.Event) (isFallback bool) {
	r := s.Request
	if r == nil {
		s.Request = &reducer.Request{ID: event.FormatRequestID(s.ContextName, s.Requests+1)}
		return false
	}
	started := event.Counter(s.LastEventID())
	if through := event.Counter(r.Through); r.Steps > 0 && 0 < through && through < started-1 {
		r.Limit = r.Through
	}
	return slices.ContainsFunc(events, func(e event.Event) bool {
		body, ok := e.Body.(event.LLMRequestFellBack)
		return ok && body.RequestID == r.ID
	})
}

// changed folds the settings of the evaluation.
func (a *Activities) changed(s reducer.Session, in wire.Evaluation) (reducer.ReducedContext, error) {
	var changes []event.Event
	if in.Provider != nil {
		provider := *in.Provider
		provider.AsFallback = false
		changes = append(changes, event.New(provider))
	}
	if in.System != nil {
		changes = append(changes, event.New(event.SystemPrompt{Content: *in.System}))
	}
	for i := range changes {
		changes[i].ID, changes[i].ContextName, changes[i].Timestamp = event.FormatID(s.ContextName, s.EventCount+1+i), s.ContextName, s.LastEventAt
		if err := changes[i].Validate(); err != nil {
			return s.Reduced, fmt.Errorf("evaluate %s of context %s: %w", in.Through, in.ContextName, err)
		}
	}
	return a.options.Reduce(s.Reduced, changes...), nil
}

func invalidEvaluation(err error) error {
	return temporal.NewNonRetryableApplicationError(err.Error(), "Invalid", nil)
}

// recordedTools offers tools that nothing calls.
type recordedTools []Tool

func (t recordedTools) Offer(context.Context, OfferRequest) ([]Tool, error) { return t, nil }

func (recordedTools) Call(context.Context, ToolCallRequest) ToolCallResult {
	panic("an evaluation calls no tool")
}
