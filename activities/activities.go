package activities

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/metric"
	sdkclient "go.temporal.io/sdk/client"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/hook"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/metrics"
	"github.com/seed-9ed7edd4/chronicle/internal/stream"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// Options configure [Activities].
type Options struct {
	Temporal  sdkclient.Client // a client of Namespace
	Namespace string           // of the contexts; empty: "default"
	Models    Models
	Tools     Tools // nil: none; tools of clients still work
	// Approve requires an approval of calls of Tools, in addition to the rules of the context. Nil: only those.
	Approve  event.ApprovalRules
	Hooks    []hook.Hook     // in order, see [hook.Validate]; nil: none
	Client   *client.Client  // for [Activities.Send]
	Stream   *stream.Conn    // nil: no deltas and no stop messages
	Sessions *Sessions       // of the attempts that this process's workflows schedule; nil: Generate queries workflows
	Budgets  []LabelBudget   // of the requests with a label; nil: none
	Reduce   reducer.Reducer // nil: [reducer.Reduce]
	// SearchAttributes means that the namespace has the search attributes of package wire, except for the title and the
	// labels, and DetailAttributes that it has these. Setting unregistered ones would block contexts.
	SearchAttributes, DetailAttributes bool

	Archive *archive.Archive // of the logs of runs; required
	// ContinueAfter is the number of history events after which runs continue as new, or earlier
	// if the server suggests it. 0: 4,096.
	ContinueAfter int
	// DefaultProviderID and DefaultModel receive the requests of contexts without a provider config.
	DefaultProviderID, DefaultModel string
	// Failover is the heartbeat timeout of attempts and tool calls: after such a silence of a worker, another one
	// repeats the attempt. Workers send three heartbeats in that time. 0: [DefaultFailover].
	Failover time.Duration
	// IdleClose is how long a context without input stays open. 0: for ever.
	IdleClose time.Duration
	HandBack  <-chan struct{}      // closed when the worker hands requests back; nil: never
	Rules     reducer.Rules        // of new runs; zero: [reducer.CurrentRules]
	Meters    metric.MeterProvider // records metrics; nil: none. For its views, see client.Config.
	// TraceContent adds the arguments and results of tool calls to spans.
	TraceContent bool
}

// Activities are the activities of a worker, for worker.RegisterActivity.
type Activities struct {
	options Options
	log     *eventlog.Log
	ledgers *ledgers
	metrics *metrics.Metrics
	loads   chan struct{} // contains an element for each running load

	observers map[string]*observer // by name
}

// observer is a hook with OnEvent.
type observer struct {
	hook.Hook
	deliveries atomic.Int64 // running now
}

// New returns the activities of a worker.
func New(options Options) *Activities {
	if options.Reduce == nil {
		options.Reduce = reducer.Reduce
	}
	options.Rules = cmp.Or(options.Rules, reducer.CurrentRules)
	observers := map[string]*observer{}
	for _, h := range options.Hooks {
		if h.OnEvent != nil {
			observers[h.Name] = &observer{Hook: h}
		}
	}
	return &Activities{
		options: options, observers: observers, log: eventlog.New(options.Temporal, options.Namespace, options.Archive),
		ledgers: newLedgers(options.Temporal), metrics: metrics.New(options.Meters), loads: make(chan struct{}, maxLoads),
	}
}

// StopInput is the input of [Activities.Stop].
type StopInput struct {
	ContextName string              `json:"contextName"`
	Stop        reducer.StopAttempt `json:"stop"`
}

const stopTimeout = 500 * time.Millisecond

// Stop sends a stop message, and reports whether the worker that runs the attempt acknowledged it within half a second.
// It is false before the attempt begins, after its end and without NATS. The error is always nil.
func (a *Activities) Stop(ctx context.Context, in StopInput) (acknowledged bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	return a.options.Stream.Stop(ctx, in.ContextName, stream.Stop(in.Stop)) == nil, nil
}
