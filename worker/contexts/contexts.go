package contexts

import (
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/seed-9ed7edd4/chronicle/activities"
	chronicle "github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/backend"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/stream"
	"github.com/seed-9ed7edd4/chronicle/wire"
	"github.com/seed-9ed7edd4/chronicle/workflows"
)

// Part selects the tasks that a worker polls: workflow tasks, activity tasks or both.
type Part string

// The parts. A task queue needs both, in one worker or in several.
const (
	Both           Part = ""
	OnlyWorkflows  Part = "workflows"
	OnlyActivities Part = "activities"
)

// HandBack is the time to hand running requests back to Temporal when the worker stops.
const HandBack = 10 * time.Second

// MinContinueAfter is the minimum of Options.ContinueAfter. A run that starts, completes one
// turn and continues as new has fewer history events.
const MinContinueAfter = 50

type Options struct {
	// Namespace of the Temporal client. Empty: "default".
	Namespace string
	// TaskQueue to poll. Empty: wire.TaskQueue.
	TaskQueue string
	// Part to run. Zero: both.
	Part   Part
	Models *llm.Adapter
	// Tools are the tools of the worker, the same in all workers of a task queue. Nil: none;
	// tools of clients still work.
	Tools activities.Tools
	// Stream carries live deltas; nil: none.
	Stream *stream.Conn
	// Reduce folds events into the messages for the model. Nil: reducer.Reduce. It must be
	// pure, and the same in all workers of a task queue.
	Reduce reducer.Reducer
	// SearchAttributes: contexts set them; see [RegisterSearchAttributes].
	SearchAttributes bool
	// Archive stores the logs; required. Its store is also the ExternalStorage of the Temporal
	// client.
	Archive *archive.Archive
	// StoreID is the identity of that store (blobs.Store.Identity). Workflow tasks of contexts
	// with another store fail. Empty: no check.
	StoreID string
	// ContinueAfter is the number of history events after which a run continues as new, at
	// least MinContinueAfter. 0: when the server suggests it, at 4,096.
	ContinueAfter int
	// DefaultModel is the model shown in the Temporal UI for contexts without a provider of
	// their own. Optional.
	DefaultModel string
	// CacheBytes is the approximate memory of cached contexts in bytes. Zero: bounded only by
	// the number of workflows that the SDK caches.
	CacheBytes int64
	// DrainTimeout is the time for running answers to finish in Stop before they are handed
	// back to Temporal. Zero: at once.
	DrainTimeout time.Duration
	// Rules of new runs. Zero: reducer.CurrentRules.
	Rules reducer.Rules
	// OnFatalError is called when the worker fails. Optional.
	OnFatalError func(error)
}

// NewWorker returns a worker to be started. You can register your own workflows and activities
// with it.
func NewWorker(temporal client.Client, options Options) *Worker {
	if options.TaskQueue == "" {
		options.TaskQueue = wire.TaskQueue
	}
	if options.ContinueAfter != 0 {
		options.ContinueAfter = max(options.ContinueAfter, MinContinueAfter)
	}
	w := &Worker{drainTimeout: options.DrainTimeout, handBack: make(chan struct{}), stopped: make(chan struct{})}
	cache := activities.NewSessionCache(options.CacheBytes)
	// Spare pollers save time: the server writes a task that arrives without a poller to its
	// database and reads it back.
	pollers := worker.NewPollerBehaviorAutoscaling(worker.PollerBehaviorAutoscalingOptions{
		InitialNumberOfPollers: 32,
		MinimumNumberOfPollers: 32,
		MaximumNumberOfPollers: 64,
	})
	common := worker.Options{
		// A worker learns that an activity was cancelled from the response to a heartbeat, so
		// this interval bounds the delay.
		MaxHeartbeatThrottleInterval:     time.Second,
		DefaultHeartbeatThrottleInterval: time.Second,
		WorkerStopTimeout:                options.DrainTimeout + HandBack,
		// If the server announces its limit, the SDK applies it to a marker before large
		// payloads go to the blob store.
		DisablePayloadErrorLimit: true,
	}
	main := common
	main.Interceptors = []interceptor.WorkerInterceptor{workflows.Interceptor()}
	main.WorkflowTaskPollerBehavior = pollers
	main.ActivityTaskPollerBehavior = pollers
	// The default is one second. Decoding a session of several megabytes takes longer when many
	// workflow tasks share few cores, and the failed task would only be retried: 60 contexts of
	// 7 MB on two cores exceed 5 s.
	main.DeadlockDetectionTimeout = 30 * time.Second
	main.DisableWorkflowWorker = options.Part == OnlyActivities
	main.LocalActivityWorkerOnly = options.Part == OnlyWorkflows
	main.OnFatalError = options.OnFatalError
	w.Worker = worker.New(temporal, options.TaskQueue, main)
	if options.Part != OnlyActivities {
		w.RegisterWorkflowWithOptions(
			workflows.New(workflows.Options{Reduce: options.Reduce, Cache: cache, StoreID: options.StoreID}),
			workflow.RegisterOptions{Name: wire.WorkflowType})
		w.RegisterWorkflowWithOptions(workflows.Send, workflow.RegisterOptions{Name: wire.WorkflowSend})
	}
	all := activities.Options{
		Temporal:  temporal,
		Namespace: options.Namespace,
		Models:    backend.Models(options.Models),
		Tools:     options.Tools,
		Sender: backend.Sender(chronicle.New(chronicle.Options{
			Temporal: temporal, Namespace: options.Namespace, TaskQueue: options.TaskQueue, Archive: options.Archive,
		})),
		Stream:           backend.Stream(options.Stream),
		Cache:            cache,
		Reduce:           options.Reduce,
		SearchAttributes: options.SearchAttributes,
		DefaultModel:     options.DefaultModel,
		Archive:          options.Archive,
		ContinueAfter:    options.ContinueAfter,
		HandBack:         w.handBack,
		Rules:            options.Rules,
	}
	if options.Part != OnlyWorkflows {
		all.WorkerQueue = wire.WorkerQueue(options.TaskQueue, uuid.NewString())
		own := common
		own.DisableWorkflowWorker = true
		own.MaxConcurrentActivityTaskPollers = 1
		own.OnFatalError = options.OnFatalError
		w.own = worker.New(temporal, all.WorkerQueue, own)
	}
	acts := activities.New(all)
	w.RegisterActivity(acts)
	if w.own != nil {
		w.own.RegisterActivity(acts)
	}
	return w
}
