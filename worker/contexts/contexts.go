package contexts

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/seed-9ed7edd4/chronicle/activities"
	chronicle "github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/hook"
	"github.com/seed-9ed7edd4/chronicle/internal/backend"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/internal/stream"
	"github.com/seed-9ed7edd4/chronicle/internal/tracing/intercept"
	"github.com/seed-9ed7edd4/chronicle/internal/version"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/reducer"
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

// MinContinueAfter is the minimum of Options.ContinueAfter. A run with one turn and no tool calls has
// fewer history events.
const MinContinueAfter = 50

// Options configure a [Worker].
type Options struct {
	Namespace string // of the Temporal client; empty: "default"
	TaskQueue string // empty: wire.TaskQueue
	Part      Part
	Models    *llm.Adapter
	// Tools must be the same in all workers of a task queue. Nil: none; tools of clients still work.
	Tools  activities.Tools
	Stream *stream.Conn // live deltas; nil: none
	// Hooks check all requests and answers, in this order, or receive all events. They must be
	// the same in all workers of a task queue, whatever their Part. Start returns an error if they are invalid.
	Hooks []hook.Hook
	// Reduce must be pure, and the same in all workers of a task queue. If it panics, the context waits: Temporal
	// repeats the workflow task until a worker has a Reduce that does not, and then processes all accepted input.
	// Nil: reducer.Reduce.
	Reduce           reducer.Reducer
	SearchAttributes bool // whether contexts set them; see [RegisterSearchAttributes]
	// Archive is required. The Temporal client must have its store, see [WithStore].
	Archive *archive.Archive
	// StoreID is the result of blobs.Store.Identity. Workflow tasks of contexts with another store
	// fail. Empty: no check.
	StoreID string
	// ContinueAfter is the number of history events after which a run continues as new, at least
	// MinContinueAfter. 0: 4,096.
	ContinueAfter int
	// Budgets limit the daily usage of the requests with a label. They must be the same in all
	// workers of a task queue. Nil: none.
	Budgets []activities.LabelBudget
	// Failover is the time after which another worker takes over the work of one that has died. Workers send a
	// heartbeat for each running activity every third of it. 0: 3 s.
	Failover time.Duration
	// IdleClose is the time without input after which an idle session ends. 0: never.
	IdleClose time.Duration
	// DrainTimeout is how long Stop lets answers finish before it hands them back. 0: at once.
	DrainTimeout time.Duration
	Rules        reducer.Rules // of new runs; zero: reducer.CurrentRules
	// Meters records metrics; nil: none. Its views must not drop the instrument chronicle_batches. Observations
	// are buffered, and at each export the callback of this instrument passes them to the other instruments.
	Meters metric.MeterProvider
	// Tracers makes spans; nil: none. The Temporal client needs the interceptor client.Tracing.
	Tracers      trace.TracerProvider
	TraceContent bool        // adds the arguments and results of tool calls to spans
	OnFatalError func(error) // called when the worker fails; optional
}

// validate reports options with which a worker cannot work.
func (o Options) validate() error {
	missing := func(field, what string) error {
		return fmt.Errorf("worker of contexts: Options.%s is missing (%s)", field, what)
	}
	tools := reflect.ValueOf(o.Tools)
	switch {
	case o.Archive == nil:
		return missing("Archive", "archive.New of the blob store")
	case o.Models == nil && o.Part != OnlyWorkflows:
		return missing("Models", "llm.New of the providers")
	case tools.Kind() == reflect.Pointer && tools.IsNil():
		return fmt.Errorf("worker of contexts: Options.Tools is a nil %T (leave it out for no tools)", o.Tools)
	case !slices.Contains([]Part{Both, OnlyWorkflows, OnlyActivities}, o.Part):
		return fmt.Errorf("worker of contexts: Options.Part is %q (want \"\", %q or %q)", o.Part, OnlyWorkflows, OnlyActivities)
	}
	return hook.Validate(o.Hooks)
}

func blobReader(store *blobs.Store) func(ctx context.Context, ref string) ([]byte, error) {
	return func(ctx context.Context, ref string) ([]byte, error) {
		parsed, err := blobs.ParseRef(ref)
		if err != nil {
			return nil, err
		}
		return store.Get(ctx, parsed)
	}
}

// NewWorker returns a worker, not started. You can register your own workflows and activities too. Invalid options
// are an error of [Worker.Start].
func NewWorker(temporal client.Client, options Options) *Worker {
	if options.TaskQueue == "" {
		options.TaskQueue = wire.TaskQueue
	}
	if options.ContinueAfter != 0 {
		options.ContinueAfter = max(options.ContinueAfter, MinContinueAfter)
	}
	w := &Worker{drainTimeout: options.DrainTimeout, handBack: make(chan struct{}), stopped: make(chan struct{})}
	w.unmeasure = measureWaiting(temporal, options)
	w.invalid = options.validate()
	if options.Models != nil && options.Archive != nil {
		options.Models.UseStore(blobReader(options.Archive.Store()))
	}
	sessions := activities.NewSessions()
	main := worker.Options{
		// By default, the SDK delays a heartbeat by up to 0.8 of its timeout. The response to one reports the
		// cancellation of an activity.
		MaxHeartbeatThrottleInterval:     time.Second,
		DefaultHeartbeatThrottleInterval: time.Second,
		WorkerStopTimeout:                options.DrainTimeout + HandBack,
		// Polls and history events show the build id. It does not route tasks, so builds with the same
		// version and different local changes may share a task queue.
		//lint:ignore SA1019 the replacement requires versioned workers
		BuildID: version.Build(),
		// Otherwise the SDK checks the server's limit before large payloads go to the blob store.
		DisablePayloadErrorLimit: true,
	}
	if options.Tracers != nil {
		main.Interceptors = []interceptor.WorkerInterceptor{intercept.Worker(options.Tracers)}
	}
	main.Interceptors = append(main.Interceptors, workflows.Interceptor())
	// Spare pollers save time: the server writes a task without a waiting poller to its database. Their number is
	// fixed, because pollers that adapt it wake up ten times a second, two thirds of the CPU of an idle worker.
	main.MaxConcurrentWorkflowTaskPollers = 64 // half of them for contexts that are not cached
	main.MaxConcurrentActivityTaskPollers = 32
	// The default of 1 s is too short to decode large sessions when many tasks share few cores (60
	// contexts of 7 MB on two cores exceed 5 s), and the failed task would only be retried.
	main.DeadlockDetectionTimeout = 30 * time.Second
	if slices.ContainsFunc(options.Hooks, func(h hook.Hook) bool { return h.OnEvent != nil }) {
		main.MaxConcurrentActivityExecutionSize = 1000 + activities.MaxDeliveries // 1000 is the default
	}
	main.DisableWorkflowWorker = options.Part == OnlyActivities
	main.LocalActivityWorkerOnly = options.Part == OnlyWorkflows
	main.OnFatalError = options.OnFatalError
	w.Worker = worker.New(temporal, options.TaskQueue, main)
	if options.Part != OnlyActivities {
		w.RegisterWorkflowWithOptions(
			workflows.New(workflows.Options{Reduce: options.Reduce, Sessions: sessions, StoreID: options.StoreID, Meters: options.Meters}),
			workflow.RegisterOptions{Name: wire.WorkflowType})
		w.RegisterWorkflowWithOptions(workflows.Send, workflow.RegisterOptions{Name: wire.WorkflowSend})
		w.RegisterWorkflowWithOptions(workflows.Budget, workflow.RegisterOptions{Name: wire.WorkflowBudget})
	}
	all := activities.Options{
		Temporal:  temporal,
		Namespace: options.Namespace,
		Models:    backend.Models(options.Models),
		Tools:     options.Tools,
		Hooks:     options.Hooks,
		Client: chronicle.New(chronicle.Options{
			Temporal: temporal, Namespace: options.Namespace, TaskQueue: options.TaskQueue, Archive: options.Archive,
		}),
		Stream:           options.Stream,
		Sessions:         sessions,
		Reduce:           options.Reduce,
		SearchAttributes: options.SearchAttributes,
		Failover:         options.Failover,
		IdleClose:        options.IdleClose,
		Budgets:          options.Budgets,
		Archive:          options.Archive,
		ContinueAfter:    options.ContinueAfter,
		HandBack:         w.handBack,
		Rules:            options.Rules,
		Meters:           options.Meters,
		TraceContent:     options.TraceContent,
	}
	if options.Models != nil {
		all.DefaultProviderID, all.DefaultModel = options.Models.Default()
	}
	w.RegisterActivity(activities.New(all))
	return w
}
