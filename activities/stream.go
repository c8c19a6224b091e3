package activities

import (
	"context"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Stream carries ephemeral messages: deltas and progress from workers to clients that follow a context, and
// stop messages between workers.
type Stream interface {
	// Broadcast begins to publish the deltas of an attempt. It calls onStop, on another goroutine,
	// for each stop message to the attempt.
	Broadcast(attempt StreamAttempt, onStop func(Stop)) Broadcast
	// Progress publishes the progress of a tool call. It does not block on followers.
	Progress(contextName string, progress event.ToolProgress)
	// Stop reports whether the worker that runs the attempt acknowledged the message.
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

// Stop asks the worker that runs an attempt to stop it.
type Stop struct {
	RequestID string       `json:"requestId"`
	Attempt   int          `json:"attempt"`
	Reason    event.Reason `json:"reason"`
	Unsent    bool         `json:"unsent,omitempty"` // only if the attempt has not been sent yet
}

type noStream struct{}

func (noStream) Broadcast(StreamAttempt, func(Stop)) Broadcast { return noStream{} }
func (noStream) Progress(string, event.ToolProgress)           {}
func (noStream) Stop(context.Context, string, Stop) bool       { return false }
func (noStream) SetThrough(string)                             {}
func (noStream) Publish(Delta)                                 {}
func (noStream) Close()                                        {}
