package activities

import (
	"cmp"
	"context"

	"go.temporal.io/sdk/client"

	"github.com/seed-9ed7edd4/chronicle/eventlog"
	"github.com/seed-9ed7edd4/chronicle/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// Options configure [Activities].
type Options struct {
	// Temporal is a client for Namespace.
	Temporal client.Client
	// Namespace of the contexts. Empty: "default".
	Namespace string
	// Models finds the models of requests.
	Models Models
	// Tools are the tools of the worker. Nil: none; tools of clients still work.
	Tools Tools
	// Sender sends the messages of schedules.
	Sender Sender
	// Stream carries deltas and stop messages. Nil: none.
	Stream Stream
	// Cache is shared with the workflows of this process. Nil: Generate queries workflows.
	Cache *SessionCache
	// Reduce folds the log of earlier sessions. Nil: [reducer.Reduce].
	Reduce reducer.Reducer
	// SearchAttributes means that the search attributes of package wire are registered in the
	// namespace. Setting unregistered ones would block contexts.
	SearchAttributes bool
	// Archive stores the logs of runs.
	Archive *archive.Archive
	// ContinueAfter is the number of history events after which runs continue as new. 0: when
	// the server suggests it, at 4,096.
	ContinueAfter int
	// DefaultModel is the name of this worker's default model in the Temporal UI. Optional.
	DefaultModel string
	// WorkerQueue is a task queue that only this process polls, for [Activities.Generate] with
	// Adopt. Empty: when a run continues as new, its request is sent again.
	WorkerQueue string
	// HandBack is closed when a worker that shuts down hands running requests back. Nil: never.
	HandBack <-chan struct{}
	// Rules of new runs. Zero: [reducer.CurrentRules].
	Rules reducer.Rules
}

// Activities are the activities of a worker, for worker.RegisterActivity.
type Activities struct {
	options Options
	log     *eventlog.Log
	running *attempts
}

// New returns the activities.
func New(options Options) *Activities {
	if options.Reduce == nil {
		options.Reduce = reducer.Reduce
	}
	if options.Stream == nil {
		options.Stream = noStream{}
	}
	options.Rules = cmp.Or(options.Rules, reducer.CurrentRules)
	return &Activities{
		options: options, log: eventlog.New(options.Temporal, options.Namespace, options.Archive), running: newAttempts(),
	}
}

// StopInput is the input of [Activities.Stop].
type StopInput struct {
	ContextName string `json:"contextName"`
	Stop        Stop   `json:"stop"`
}

// Stop sends a stop message, and reports whether the worker that runs the request acknowledged
// it. There is none before the first attempt, between two attempts and without NATS.
func (a *Activities) Stop(ctx context.Context, in StopInput) (acknowledged bool, err error) {
	return a.options.Stream.Stop(ctx, in.ContextName, in.Stop), nil
}
