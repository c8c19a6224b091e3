// Package backend implements the models of package activities with package llm. It keeps go-openai out of the
// dependencies of activities and workflows.
package backend

import (
	"context"
	"errors"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// Models sends requests through an adapter. ReadBlob reads the [event.Source.Ref] of attachments of a context.
func Models(adapter *llm.Adapter, readBlob func(ctx context.Context, contextName, ref string) ([]byte, error)) activities.Models {
	return models{adapter, readBlob}
}

type models struct {
	adapter  *llm.Adapter
	readBlob func(ctx context.Context, contextName, ref string) ([]byte, error)
}

func (m models) Resolve(config reducer.ProviderConfig) (activities.Model, error) {
	target, err := m.adapter.Resolve(config)
	if err != nil {
		return nil, modelError(err)
	}
	return model{target, m.readBlob}, nil
}

type model struct {
	target   *llm.Target
	readBlob func(ctx context.Context, contextName, ref string) ([]byte, error)
}

func (m model) ID() (providerID, name string) { return m.target.ProviderID, m.target.Model }

func (m model) Check(r activities.ModelRequest) error {
	m.prepare(r)
	return modelError(m.target.Check())
}

func (m model) prepare(r activities.ModelRequest) {
	m.target.Conversation, m.target.FirstToken, m.target.Stall = r.ContextName, r.FirstToken, r.Stall
	m.target.ReadBlob = func(ctx context.Context, ref string) ([]byte, error) { return m.readBlob(ctx, r.ContextName, ref) }
	m.target.Settings, m.target.Repair = r.Settings, r.Repair
	m.target.MaxOutput, m.target.Tools = r.MaxOutput, nil
	for _, tool := range r.Tools {
		m.target.Tools = append(m.target.Tools, llm.Tool(tool))
	}
}

func (m model) Stream(ctx context.Context, r activities.ModelRequest, onDelta func(activities.Delta)) (activities.Answer, error) {
	m.prepare(r)
	result, err := m.target.Stream(ctx, r.Messages, func(d llm.Delta) { onDelta(activities.Delta(d)) })
	err = modelError(err)
	var failed *activities.ModelError
	var invalid *llm.Error
	if errors.As(err, &failed) && errors.As(err, &invalid) && invalid.Kind == llm.KindInvalidAnswer {
		failed.Answer = result.Text
		if invalid.Problem != "" {
			failed.Repair = &reducer.Repair{Answer: result.Text, Problem: invalid.Problem}
		}
	}
	answer := activities.Answer{
		Text: result.Text, Reasoning: result.Reasoning, State: result.State, FinishReason: result.FinishReason, Usage: result.Usage, Calls: result.Calls,
	}
	return answer, err
}

func (m model) Reservation(ctx context.Context, r activities.ModelRequest) (event.Usage, error) {
	m.prepare(r)
	usage, err := m.target.Reservation(ctx, r.Messages)
	return usage, modelError(err)
}

func (m model) MaxInput(ctx context.Context, r activities.ModelRequest) (int, error) {
	m.prepare(r)
	tokens, err := m.target.MaxInput(ctx)
	return tokens, modelError(err)
}

func (m model) InputTokens(ctx context.Context, r activities.ModelRequest, limit int) (int, error) {
	m.prepare(r)
	tokens, err := m.target.InputTokens(ctx, r.Messages, limit)
	return tokens, modelError(err)
}

func (m model) Usage() event.Usage { return m.target.Usage() }

func modelError(err error) error {
	var failed *llm.Error
	if !errors.As(err, &failed) {
		return err
	}
	return &activities.ModelError{
		Kind: string(failed.Kind), Failure: failed.Kind.Failure(), Retryable: failed.Retryable(), Suspects: failed.Suspects, RetryAfter: failed.RetryAfter,
		Window: failed.Window, InputTokens: failed.InputTokens, Err: err,
	}
}
