package activities

import (
	"cmp"
	"context"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/seed-9ed7edd4/chronicle/eventlog"
	"github.com/seed-9ed7edd4/chronicle/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// Options are what the activities work with.
type Options struct {
	// Temporal is a client of the namespace of the contexts.
	Temporal client.Client
	// Namespace is that namespace. Empty: "default".
	Namespace string
	// Models finds the models of requests.
	Models Models
	// Stream carries deltas and stop messages. Nil: there are none.
	Stream Stream
	// Cache is shared with the workflows of this process. Nil: sessions
	// are asked by query.
	Cache *SessionCache
	// Reduce folds the log of earlier sessions. Nil: [reducer.Reduce].
	Reduce reducer.Reducer
	// SearchAttributes says that the search attributes of package wire are
	// registered in the namespace. Using them otherwise would stop a context.
	SearchAttributes bool
	// Archive keeps the logs of runs.
	Archive *archive.Archive
	// ContinueAfter is how many entries the history of a run has before another
	// one goes on. 0 leaves it to the server, which suggests it at 4,096.
	ContinueAfter int
	// DefaultModel is what to call the default model of this worker. Optional.
	DefaultModel string
	// WorkerQueue is a task queue that only this process polls, for [Activities.Generate]
	// with Adopt. Empty: requests of runs that continue as new are made again.
	WorkerQueue string
	// HandBack is closed when the worker shuts down and running requests are to
	// be returned. Nil: never.
	HandBack <-chan struct{}
	// Rules are those of new runs. Zero: [reducer.CurrentRules].
	Rules reducer.Rules
}

// Activities are the activities of a worker. Register them with
// worker.RegisterActivity; workflows refer to them through a nil pointer.
type Activities struct {
	options Options
	log     *eventlog.Log
	running *generations
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
		options: options, log: eventlog.New(options.Temporal, options.Namespace, options.Archive), running: newGenerations(),
	}
}

// StopInput asks to stop a request.
type StopInput struct {
	ContextName string `json:"contextName"`
	Stop        Stop   `json:"stop"`
}

// Stop reports whether the worker that makes the request has heard of it. It
// has not when there is none, between two attempts, or when NATS is away.
func (a *Activities) Stop(ctx context.Context, in StopInput) (heard bool, err error) {
	return a.options.Stream.Stop(ctx, in.ContextName, in.Stop), nil
}

// sleep waits, or returns the cause for which the context ended. Zero or less
// does not wait.
func sleep(ctx context.Context, d time.Duration) error {
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
	}
	return context.Cause(ctx)
}
