package contexts

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/hook"
	"github.com/seed-9ed7edd4/chronicle/internal/backend"
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

// Options configure a [Worker]. Tools, Approve, Hooks, Reduce and Budgets must be the same in all workers of a task queue,
// whatever their Part.
type Options struct {
	Part   Part
	Models *llm.Adapter     // required, except for OnlyWorkflows
	Tools  activities.Tools // nil: none; tools of clients still work
	// Approve requires an approval of calls of Tools, whatever the settings of a context say. Nil: the contexts decide.
	Approve event.ApprovalRules
	// Hooks check all requests and answers, in this order, or receive all events.
	Hooks []hook.Hook
	// Reduce must be pure. If it panics, the context waits: Temporal repeats the workflow task until a worker has a
	// Reduce that does not, and then processes all accepted input. Nil: reducer.Reduce.
	Reduce reducer.Reducer
	// Budgets limit the daily usage of the requests with a label. Nil: none.
	Budgets []activities.LabelBudget
	// ContinueAfter is the number of history events after which a run continues as new, at least
	// MinContinueAfter. 0: 4,096.
	ContinueAfter int
	// Failover is the time after which another worker takes over the work of one that has died. Workers send a
	// heartbeat for each running activity every third of it. 0: 3 s.
	Failover time.Duration
	// IdleClose is the time without input after which an idle session ends. 0: never.
	IdleClose time.Duration
	// DrainTimeout is how long Stop lets answers finish before it hands them back. 0: at once.
	DrainTimeout time.Duration
	Rules        reducer.Rules // of new runs; zero: reducer.CurrentRules
	TraceContent bool          // adds the arguments and results of tool calls to spans
	OnFatalError func(error)   // called when the worker fails; optional
}

// validate reports options with which a worker cannot work.
func (o Options) validate() error {
	tools := reflect.ValueOf(o.Tools)
	switch {
	case !slices.Contains([]Part{Both, OnlyWorkflows, OnlyActivities}, o.Part):
		return fmt.Errorf("worker of contexts: Options.Part is %q (want \"\", %q or %q)", o.Part, OnlyWorkflows, OnlyActivities)
	case o.Models == nil && o.Part != OnlyWorkflows:
		return errors.New("worker of contexts: Options.Models is missing (llm.New of the providers)")
	case tools.Kind() == reflect.Pointer && tools.IsNil():
		return fmt.Errorf("worker of contexts: Options.Tools is a nil %T (leave it out for no tools)", o.Tools)
	}
	return hook.Validate(o.Hooks)
}

// NewWorker returns a worker, not started. Register workflows and activities of your own with it, too. The error says
// which of the options is missing or invalid.
func (c *Connection) NewWorker(options Options) (*Worker, error) {
	if c.Archive == nil {
		return nil, errors.New("worker of contexts: the connection has no blob store (make it with Connect)")
	}
	if err := options.validate(); err != nil {
		return nil, err
	}
	if options.ContinueAfter != 0 {
		options.ContinueAfter = max(options.ContinueAfter, MinContinueAfter)
	}
	w := &Worker{
		measure: c.measureWaiting, unmeasure: func() {},
		drainTimeout: options.DrainTimeout, handBack: make(chan struct{}), stopped: make(chan struct{}),
	}
	w.Worker = worker.New(c.Temporal, c.taskQueue(), c.workerOptions(options))
	sessions := activities.NewSessions()
	if options.Part != OnlyActivities {
		w.RegisterWorkflowWithOptions(
			workflows.New(workflows.Options{Reduce: options.Reduce, Sessions: sessions, StoreID: c.StoreID, Meters: c.Meters}),
			workflow.RegisterOptions{Name: wire.WorkflowType})
		w.RegisterWorkflowWithOptions(workflows.Send, workflow.RegisterOptions{Name: wire.WorkflowSend})
		w.RegisterWorkflowWithOptions(workflows.Delete, workflow.RegisterOptions{Name: wire.WorkflowDelete})
		w.RegisterWorkflowWithOptions(workflows.Budget, workflow.RegisterOptions{Name: wire.WorkflowBudget})
		w.RegisterWorkflowWithOptions(workflows.Evaluate, workflow.RegisterOptions{Name: wire.WorkflowEvaluate})
		w.RegisterWorkflowWithOptions(workflows.Offer, workflow.RegisterOptions{Name: wire.WorkflowOffer})
	}
	all := activities.Options{
		Temporal:         c.Temporal,
		Namespace:        c.Namespace,
		Tools:            options.Tools,
		Approve:          options.Approve,
		Hooks:            options.Hooks,
		Client:           c.Client(),
		Stream:           c.Stream,
		Sessions:         sessions,
		Reduce:           options.Reduce,
		SearchAttributes: c.SearchAttributes,
		DetailAttributes: c.DetailAttributes,
		Failover:         options.Failover,
		IdleClose:        options.IdleClose,
		Budgets:          options.Budgets,
		Archive:          c.Archive,
		ContinueAfter:    options.ContinueAfter,
		HandBack:         w.handBack,
		Rules:            options.Rules,
		Meters:           c.Meters,
		TraceContent:     options.TraceContent,
	}
	if options.Models != nil {
		all.Models = backend.Models(options.Models, c.readBlob)
		all.DefaultProviderID, all.DefaultModel = options.Models.Default()
	}
	w.RegisterActivity(activities.New(all))
	return w, nil
}

func (c *Connection) workerOptions(options Options) worker.Options {
	failover := cmp.Or(options.Failover, activities.DefaultFailover)
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
		// Spare pollers save time: the server writes a task without a waiting poller to its database. Their number is
		// fixed, because pollers that adapt it wake up ten times a second, two thirds of the CPU of an idle worker.
		MaxConcurrentWorkflowTaskPollers: 64, // half of them for contexts that are not cached
		MaxConcurrentActivityTaskPollers: 32,
		// A dead worker delays the workflow task that decides about its attempt by this time, by default 5 s.
		StickyScheduleToStartTimeout: min(max(failover/3, time.Second), 5*time.Second),
		// The default of 1 s is too short to decode large sessions when many tasks share few cores (60
		// contexts of 7 MB on two cores exceed 5 s), and the failed task would only be retried.
		DeadlockDetectionTimeout: 30 * time.Second,
		DisableWorkflowWorker:    options.Part == OnlyActivities,
		LocalActivityWorkerOnly:  options.Part == OnlyWorkflows,
		OnFatalError:             options.OnFatalError,
	}
	if c.Tracers != nil {
		main.Interceptors = []interceptor.WorkerInterceptor{intercept.Worker(c.Tracers)}
	}
	main.Interceptors = append(main.Interceptors, workflows.Interceptor())
	if slices.ContainsFunc(options.Hooks, func(h hook.Hook) bool { return h.OnEvent != nil }) {
		main.MaxConcurrentActivityExecutionSize = 1000 + activities.MaxDeliveries // 1000 is the default
	}
	return main
}
