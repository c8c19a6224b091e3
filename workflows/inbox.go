package workflows

import (
	"slices"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/proto"
)

// Temporal's signal channels do not preserve the order between signal names: an interrupt
// and the message after it could change places. The interceptor receives signals in
// history order, and puts them into one inbox.

// signal is an undecoded signal or update.
type signal struct {
	name     string
	payloads *commonpb.Payloads
	append   *pendingAppend // nil for a signal
}

// size returns the bytes of the input.
func (s signal) size() int {
	if s.append != nil {
		return s.append.size
	}
	return proto.Size(s.payloads)
}

// inbox contains the unprocessed signals and updates of a run, oldest first.
type inbox struct {
	signals []signal
	// size is that of signals, in bytes.
	size int
	// signalled and updated count the signals and updates that the run received.
	signalled, updated int
	// plainBytes counts the bytes of the signals that any Temporal client may send. Larger
	// ones are references in the history.
	plainBytes int
}

func (b *inbox) empty() bool { return len(b.signals) == 0 }

// hasUpdate reports whether an update waits for its result.
func (b *inbox) hasUpdate() bool {
	return slices.ContainsFunc(b.signals, func(s signal) bool { return s.append != nil })
}

func (b *inbox) put(s signal) {
	b.signals = append(b.signals, s)
	b.size += s.size()
}

func (b *inbox) take() signal {
	first := b.signals[0]
	b.signals[0] = signal{} // releases the payload: idle contexts keep the array
	b.signals = b.signals[1:]
	b.size -= first.size()
	return first
}

// maxPlainBytes is the largest payload that the server accepts: limit.blobSize.error of
// deploy/dynamicconfig.yaml.
const maxPlainBytes = 512 << 10

type inboxKey struct{}

// Interceptor returns the interceptor that [Context] requires, in workers, replayers and
// test environments.
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
	return i.Next.ExecuteWorkflow(workflow.WithValue(ctx, inboxKey{}, &i.inbox), in)
}

func (i *signalInterceptor) HandleSignal(ctx workflow.Context, in *interceptor.HandleSignalInput) error {
	if workflow.GetInfo(ctx).WorkflowType.Name != workflowType {
		return i.Next.HandleSignal(ctx, in)
	}
	s := signal{name: in.SignalName, payloads: in.Arg}
	i.inbox.signalled++
	if size := s.size(); size <= maxPlainBytes {
		i.inbox.plainBytes += size
	}
	i.inbox.put(s)
	return nil
}
