// Package contexts makes a Temporal worker that takes contexts: the workflow,
// its activities, and the settings that both rely on. The worker binary runs
// one; a program of one's own can too, which is how a reducer is swapped:
//
//	w := contexts.NewWorker(temporal, contexts.Options{
//		Models: llm.New(llm.Options{Defaults: llm.DefaultsFromEnv(os.Getenv)}),
//		Reduce: func(current reducer.ReducedContext, events ...event.Event) reducer.ReducedContext {
//			return forgetful(reducer.Reduce(current, events...))
//		},
//	})
//	err := w.Run(worker.InterruptCh())
package contexts

import (
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/archive"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/stream"
	"github.com/seed-9ed7edd4/chronicle/wire"
	"github.com/seed-9ed7edd4/chronicle/workflows"
)

// Part is what of a context a worker takes.
type Part string

// The parts. A namespace needs both, in one worker or in several.
const (
	Both           Part = ""
	OnlyWorkflows  Part = "workflows"
	OnlyActivities Part = "activities"
)

// HandBack is the time that running requests have to go back to Temporal when
// the worker stops.
const HandBack = 10 * time.Second

// MinContinueAfter is the least for Options.ContinueAfter: more than a run needs
// to begin, to answer and to hand over.
const MinContinueAfter = 50

// Options of a worker.
type Options struct {
	// TaskQueue to take contexts from. Empty: wire.TaskQueue.
	TaskQueue string
	// Part is what to take. Zero: both.
	Part Part
	// Models makes the requests.
	Models *llm.Adapter
	// Stream carries live deltas; nil: there are none.
	Stream *stream.Conn
	// Reduce folds events into what the model is shown. Nil: reducer.Reduce.
	// It must be pure, and all workers of a task queue must have the same.
	Reduce reducer.Reducer
	// SearchAttributes says that those of package wire are registered.
	SearchAttributes bool
	// Archive keeps the logs of runs; required. Its store is that of the
	// blobs.ExternalStorage of the Temporal client.
	Archive *archive.Archive
	// StoreID is the identity of that store, see blobs.Store.Identity: contexts of
	// another store fail here. Empty: contexts of any store are taken.
	StoreID string
	// ContinueAfter is how many entries the history of a run has before another
	// one goes on. 0 leaves it to the server, which suggests it at 4,096. What
	// is below MinContinueAfter counts as that: such a run would be long before
	// it has taken anything, and hand over without end.
	ContinueAfter int
	// DefaultModel is what the Temporal UI calls the model of contexts that
	// chose none. Optional.
	DefaultModel string
	// CacheBytes is about how much memory cached contexts may take in bytes. Zero:
	// the number of workflows that the SDK caches is the only bound.
	CacheBytes int64
	// DrainTimeout is how long Stop lets running answers finish before it hands
	// them back to Temporal. Zero: it hands them back at once.
	DrainTimeout time.Duration
	// Rules are those of new runs. Zero: reducer.CurrentRules.
	Rules reducer.Rules
	// OnFatalError is called when the worker cannot go on. Optional.
	OnFatalError func(error)
}

// NewWorker returns a worker that is to be started. Workflows and activities
// of one's own may be registered with it, too.
func NewWorker(temporal client.Client, options Options) *Worker {
	if options.TaskQueue == "" {
		options.TaskQueue = wire.TaskQueue
	}
	if options.ContinueAfter != 0 {
		options.ContinueAfter = max(options.ContinueAfter, MinContinueAfter)
	}
	w := &Worker{drainTimeout: options.DrainTimeout, handBack: make(chan struct{}), stopped: make(chan struct{})}
	snapshots := activities.NewSnapshots(options.CacheBytes)
	// Pollers in reserve are what keeps many contexts at once from waiting for
	// each other. A task that comes while nobody polls is written to the database
	// of the server and read from there.
	pollers := worker.NewPollerBehaviorAutoscaling(worker.PollerBehaviorAutoscalingOptions{
		InitialNumberOfPollers: 32,
		MinimumNumberOfPollers: 32,
		MaximumNumberOfPollers: 64,
	})
	common := worker.Options{
		// The answer to a heartbeat says that the activity was cancelled, so its
		// pace decides how soon that is known.
		MaxHeartbeatThrottleInterval:     time.Second,
		DefaultHeartbeatThrottleInterval: time.Second,
		WorkerStopTimeout:                options.DrainTimeout + HandBack,
		// Where the server tells its limit, the SDK holds a marker against it before
		// what is large in it goes to the blob store.
		DisablePayloadErrorLimit: true,
	}
	main := common
	main.Interceptors = []interceptor.WorkerInterceptor{workflows.Interceptor()}
	main.WorkflowTaskPollerBehavior = pollers
	main.ActivityTaskPollerBehavior = pollers
	// The default is one second. Decoding a session of several megabytes takes
	// longer when many workflow tasks share few cores, and a task that fails for
	// that reason is only repeated: 60 contexts of 7 MB on two cores exceed 5 s.
	main.DeadlockDetectionTimeout = 30 * time.Second
	main.DisableWorkflowWorker = options.Part == OnlyActivities
	main.LocalActivityWorkerOnly = options.Part == OnlyWorkflows
	main.OnFatalError = options.OnFatalError
	w.Worker = worker.New(temporal, options.TaskQueue, main)
	if options.Part != OnlyActivities {
		w.RegisterWorkflowWithOptions(
			workflows.New(workflows.Options{Reduce: options.Reduce, Snapshots: snapshots, StoreID: options.StoreID}),
			workflow.RegisterOptions{Name: wire.WorkflowType})
	}
	all := activities.Options{
		Temporal:         temporal,
		Models:           options.Models,
		Stream:           options.Stream,
		Snapshots:        snapshots,
		Reduce:           options.Reduce,
		SearchAttributes: options.SearchAttributes,
		DefaultModel:     options.DefaultModel,
		Archive:          options.Archive,
		ContinueAfter:    options.ContinueAfter,
		HandBack:         w.handBack,
		Rules:            options.Rules,
	}
	if options.Part != OnlyWorkflows {
		all.OwnQueue = wire.WorkerQueue(options.TaskQueue, uuid.NewString())
		own := common
		own.DisableWorkflowWorker = true
		own.MaxConcurrentActivityTaskPollers = 1
		own.OnFatalError = options.OnFatalError
		w.own = worker.New(temporal, all.OwnQueue, own)
	}
	acts := activities.New(all)
	w.RegisterActivity(acts)
	if w.own != nil {
		w.own.RegisterActivity(acts)
	}
	return w
}
