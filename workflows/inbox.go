package workflows

import (
	"slices"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/proto"
)

// A workflow has one channel for each name of a signal, so the order of two
// signals with different names is lost: an interrupt and the message sent right
// after it could change places. The interceptor sees them as the history has
// them, and puts them into one inbox for each run.

// signal is a signal as it came, or what was appended as one.
type signal struct {
	name     string
	payloads *commonpb.Payloads
	append   *appending // nil for a signal
}

// size returns the bytes of the input.
func (s signal) size() int {
	if s.append != nil {
		return s.append.size
	}
	return proto.Size(s.payloads)
}

// inbox holds the signals of a run that were not taken yet, oldest first.
type inbox struct {
	signals []signal
	// size is their size in bytes.
	size int
	// signalled and updated count the signals and updates that the run received.
	signalled, updated int
	// plainBytes counts the bytes of the signals that any Temporal client may send. Larger
	// ones are references in the history.
	plainBytes int
}

func (b *inbox) empty() bool { return len(b.signals) == 0 }

// isAwaited reports whether a sender waits for what becomes of its events.
func (b *inbox) isAwaited() bool {
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

// Interceptor returns what a worker, a replayer and a test environment need in
// their list of interceptors to run [Context].
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
