// Package backend implements the interfaces of package activities: models with package llm, the
// stream with package stream, and the sender with package client. It keeps go-openai and NATS out of
// the dependencies of activities and workflows.
package backend

import (
	"context"
	"errors"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/stream"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// Models sends requests through an adapter. ReadBlob reads the [event.Source.Ref] of attachments.
func Models(adapter *llm.Adapter, readBlob func(ctx context.Context, ref string) ([]byte, error)) activities.Models {
	return models{adapter, readBlob}
}

type models struct {
	adapter  *llm.Adapter
	readBlob func(ctx context.Context, ref string) ([]byte, error)
}

func (m models) Resolve(config reducer.ProviderConfig) (activities.Model, error) {
	target, err := m.adapter.Resolve(config)
	if err != nil {
		return nil, modelError(err)
	}
	target.ReadBlob = m.readBlob
	return model{target}, nil
}

type model struct{ target *llm.Target }

func (m model) ID() (providerID, name string) { return m.target.ProviderID, m.target.Model }

func (m model) Check(r activities.ModelRequest) error {
	m.prepare(r)
	return modelError(m.target.Check())
}

func (m model) prepare(r activities.ModelRequest) {
	m.target.Conversation, m.target.FirstToken, m.target.Stall = r.Conversation, r.FirstToken, r.Stall
	m.target.Settings, m.target.Repair = r.Settings, (*llm.Repair)(r.Repair)
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
		Text: result.Text, Reasoning: result.Reasoning, State: result.State, FinishReason: result.FinishReason, Usage: result.Usage,
	}
	for _, call := range result.Calls {
		answer.Calls = append(answer.Calls, activities.ModelCall(call))
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

// Stream sends messages through a connection to NATS. It returns nil if conn is nil.
func Stream(conn *stream.Conn) activities.Stream {
	if conn == nil {
		return nil
	}
	return nats{conn}
}

type nats struct{ conn *stream.Conn }

func (n nats) Broadcast(attempt activities.StreamAttempt, onStop func(activities.Stop)) activities.Broadcast {
	return broadcast{n.conn.Broadcast(stream.Attempt(attempt), func(stop stream.Stop) { onStop(activities.Stop(stop)) })}
}

func (n nats) Progress(contextName string, progress event.ToolProgress) {
	n.conn.PublishProgress(contextName, progress)
}

type broadcast struct{ *stream.Broadcast }

func (b broadcast) Publish(d activities.Delta) {
	if d.IsReasoning {
		b.PublishReasoning(d.Text)
	} else {
		b.Broadcast.Publish(d.Text)
	}
}

func (n nats) Stop(ctx context.Context, contextName string, stop activities.Stop) bool {
	// An error means that no worker acknowledged it.
	return n.conn.Stop(ctx, contextName, stream.Stop(stop)) == nil
}
