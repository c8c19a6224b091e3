package activities

import (
	"context"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Stream carries ephemeral messages: deltas and progress from workers to clients that follow a context, and
// stop messages between workers.
type Stream interface {
	// Connected reports whether messages can be sent at present.
	Connected() bool
	// Broadcast begins to publish the deltas of an attempt. It calls onStop, on another goroutine,
	// for each stop message to the attempt's request.
	Broadcast(attempt StreamAttempt, onStop func(Stop)) Broadcast
	// Progress publishes the progress of a tool call. It does not block on followers.
	Progress(contextName string, progress event.ToolProgress)
	// Stop reports whether the worker that runs the request acknowledged the message.
	Stop(ctx context.Context, contextName string, stop Stop) bool
}

// Broadcast publishes the deltas of one attempt. Its methods do not block on followers.
type Broadcast interface {
	SetThrough(throughEventID string) // newest event in the attempt
	Publish(Delta)                    // the next delta of the answer
	Close()
}

// StreamAttempt identifies an attempt of a request.
type StreamAttempt struct {
	ContextName string
	RequestID   string
	Number      int    // among the attempts of the request, from 1
	After       string // newest event when the activity was scheduled; followers show it before the deltas
}

// Stop asks the worker that runs a request to stop it.
type Stop struct {
	RequestID string       `json:"requestId"`
	Reason    event.Reason `json:"reason"`
	// Through is the newest event that requires an answer. New input does not stop an attempt that
	// includes this event.
	Through string `json:"throughEventId,omitempty"`
}

type noStream struct{}

func (noStream) Connected() bool                               { return false }
func (noStream) Broadcast(StreamAttempt, func(Stop)) Broadcast { return noStream{} }
func (noStream) Progress(string, event.ToolProgress)           {}
func (noStream) Stop(context.Context, string, Stop) bool       { return false }
func (noStream) SetThrough(string)                             {}
func (noStream) Publish(Delta)                                 {}
func (noStream) Close()                                        {}
