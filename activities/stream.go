package activities

import (
	"context"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Stream carries ephemeral messages between workers and followers.
type Stream interface {
	// Connected reports whether messages can be sent at present.
	Connected() bool
	// Broadcast publishes the deltas of an attempt. It calls onStop, on another goroutine, for
	// each stop message to the attempt's request.
	Broadcast(attempt StreamAttempt, onStop func(Stop)) Broadcast
	// Progress publishes the progress of a running tool call. It does not block on followers.
	Progress(contextName string, progress event.ToolProgress)
	// Stop sends a stop message to the worker that runs the request, and reports whether it
	// was acknowledged.
	Stop(ctx context.Context, contextName string, stop Stop) bool
}

// Broadcast publishes the deltas of one attempt. Its methods do not block on followers.
type Broadcast interface {
	// SetThrough sets the newest event that the provider was shown.
	SetThrough(throughEventID string)
	// Publish publishes a piece of the answer.
	Publish(Delta)
	Close()
}

// StreamAttempt identifies an attempt of a request.
type StreamAttempt struct {
	ContextName string
	RequestID   string
	// Number counts the attempts of the request from 1.
	Number int
	// IsStep means that the attempt follows tool calls, so it does not replace the text of an earlier
	// attempt.
	IsStep bool
}

// Stop asks the worker that runs a request to stop it.
type Stop struct {
	RequestID string       `json:"requestId"`
	Reason    event.Reason `json:"reason"`
	// Through is the newest event that requires an answer. If the reason is new input, an
	// attempt that was shown this event continues.
	Through string `json:"throughEventId,omitempty"`
}

// noStream is a Stream without a connection.
type noStream struct{}

func (noStream) Connected() bool                               { return false }
func (noStream) Broadcast(StreamAttempt, func(Stop)) Broadcast { return noStream{} }
func (noStream) Progress(string, event.ToolProgress)           {}
func (noStream) Stop(context.Context, string, Stop) bool       { return false }
func (noStream) SetThrough(string)                             {}
func (noStream) Publish(Delta)                                 {}
func (noStream) Close()                                        {}
