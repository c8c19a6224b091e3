package workflows

import (
	"slices"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/proto"

	"github.com/seed-9ed7edd4/chronicle/internal/references"
	"github.com/seed-9ed7edd4/chronicle/internal/tracing/intercept"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// signal is an undecoded signal or update. Temporal's signal channels do not preserve the order
// between signal names: an interrupt and the message after it could change places. The interceptor
// puts signals into one inbox, in history order.
type signal struct {
	name     string
	payloads *commonpb.Payloads
	// loaded is what the reference in payloads refers to, and problem is why it cannot be read. Both are nil until
	// Load has returned, and for payloads without references.
	loaded  *commonpb.Payloads
	problem error
	append  *pendingAppend // nil for a signal
	origin  wire.Taken     // the position after the input
	// isUnrecorded: this is not an input, but stands for those that the run of origin accepted after it, see recover.go.
	isUnrecorded bool
	trace        string // traceparent of the sender; empty: none
}

func (s signal) size() int {
	if s.append != nil {
		return s.append.size
	}
	return proto.Size(s.payloads)
}

// isReference reports whether the input is in the blob store and has not been loaded.
func (s signal) isReference() bool {
	return s.loaded == nil && s.problem == nil && slices.ContainsFunc(s.payloads.GetPayloads(), references.IsInert)
}

// inbox contains unprocessed input, oldest first.
type inbox struct {
	signals            []signal
	size               int // of signals, in bytes
	signalled, updated int // numbers of signals and updates that the run received
}

func (b *inbox) empty() bool { return len(b.signals) == 0 }

func (b *inbox) hasUpdate() bool {
	return slices.ContainsFunc(b.signals, func(s signal) bool { return s.append != nil })
}

func (b *inbox) put(s signal) {
	b.signals = append(b.signals, s)
	b.size += s.size()
}

// putFirst puts older input before that in the inbox.
func (b *inbox) putFirst(older ...signal) {
	b.signals = append(older, b.signals...)
	for _, s := range older {
		b.size += s.size()
	}
}

func (b *inbox) take() signal {
	first := b.signals[0]
	b.signals[0] = signal{} // releases the payload: idle contexts keep the array
	b.signals = b.signals[1:]
	b.size -= first.size()
	return first
}

type inboxKey struct{}

// Interceptor returns the interceptor that [Context] requires, also in replayers and tests.
func Interceptor() interceptor.WorkerInterceptor { return &workerInterceptor{} }

type workerInterceptor struct {
	interceptor.WorkerInterceptorBase
}

func (*workerInterceptor) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	i := &signalInterceptor{}
	i.Next = next
	return i
}

type signalInterceptor struct {
	interceptor.WorkflowInboundInterceptorBase
	inbox inbox
}

func (i *signalInterceptor) ExecuteWorkflow(ctx workflow.Context, in *interceptor.ExecuteWorkflowInput) (any, error) {
	return i.Next.ExecuteWorkflow(workflow.WithValue(withReceived(ctx), inboxKey{}, &i.inbox), in)
}

func (i *signalInterceptor) ExecuteUpdate(ctx workflow.Context, in *interceptor.UpdateInput) (any, error) {
	return i.Next.ExecuteUpdate(withReceived(ctx), in)
}

func (i *signalInterceptor) HandleSignal(ctx workflow.Context, in *interceptor.HandleSignalInput) error {
	if workflow.GetInfo(ctx).WorkflowType.Name != workflowType {
		return i.Next.HandleSignal(ctx, in)
	}
	i.inbox.signalled++
	i.inbox.put(signal{name: in.SignalName, payloads: in.Arg, trace: intercept.Received(ctx), origin: wire.Taken{Signals: i.inbox.signalled}})
	return nil
}
