package workflows

import (
	"encoding/json"
	"fmt"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/proto"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

// A history has an end, at 51,200 entries or 50 MB, and a context has none. So a
// run that has grown long hands over to another, between two requests: its
// events are archived, and the session goes along as the input of the new run,
// with the signals that came meanwhile. To the context nothing has happened:
// nothing is recorded.

const (
	// maxCarriedInbox is how many bytes of signals are handed over, and with a blob
	// store wire.MaxStoredBytes. When more have come they are taken first, and the
	// run goes on for a while.
	maxCarriedInbox = 256 << 10
	// maxCarriedSession is how long a session may be that is handed over in the
	// input without a blob store. A longer one is recalled from the log.
	maxCarriedSession = 512 << 10
	// archivePatience is how long a run waits for the archive, and whoever sends
	// to it just then. What comes too late is there for the next try.
	archivePatience = 5 * time.Second
	// carryAgain is how many entries a history grows before a run that could not
	// be archived tries again.
	carryAgain = 200
	// mustCarry is how long a history may become for the sake of the archive. The
	// server would end the run not far behind; what is not archived yet stands in
	// its history still, and the next run archives it.
	mustCarry      = 45_000
	mustCarryBytes = 40 << 20
)

// carried is the input of a run that another one has handed over to.
type carried struct {
	// Session is the session, packed; without its context when that is to be
	// recalled from the log.
	Session []byte `json:"session"`
	Recall  bool   `json:"recall,omitempty"`
	// Start is a request that waits to be made. Nil: none.
	Start *reducer.StartRequest `json:"start,omitempty"`
	// Inbox are the signals that were not taken yet.
	Inbox     []carriedSignal `json:"inbox,omitempty"`
	UpdatedAt time.Time       `json:"updatedAt,omitzero"`
	// Status, Turns and ShownAt are of what the search attributes show.
	Status  wire.Status `json:"status,omitempty"`
	Turns   int         `json:"turns,omitempty"`
	ShownAt time.Time   `json:"shownAt,omitzero"`
}

// carriedSignal is a signal as it came. Its payloads are a serialized
// temporal.api.common.v1.Payloads.
type carriedSignal struct {
	Name     string `json:"name"`
	Payloads []byte `json:"payloads,omitempty"`
}

// carriedBy is the input of a run that was handed over to; nil for one that
// somebody started, with whatever input.
func carriedBy(info *workflow.Info, input converter.RawValue) (*carried, error) {
	if info.ContinuedExecutionRunID == "" {
		return nil, nil
	}
	c := &carried{}
	if err := json.Unmarshal(input.Payload().GetData(), c); err != nil {
		return nil, fmt.Errorf("the input of a run that continues another: %w", err)
	}
	return c, nil
}

// isLong reports whether it is time to hand over.
func (r *run) isLong() bool {
	info := workflow.GetInfo(r.ctx)
	length := info.GetCurrentHistoryLength()
	if r.generate != nil || r.session.Ended || length < r.carryFrom {
		return false
	}
	return info.GetContinueAsNewSuggested() || r.continueAfter > 0 && length >= r.continueAfter
}

// handOver ends the run and begins another, unless there is a reason to go on
// for a while; then it returns nil.
func (r *run) handOver() error {
	r.leaving = true
	defer func() { r.leaving = false }()
	ok := r.archiveSoon() || r.mustHandOver()
	if ok && r.inbox.isAwaited() && !r.mustHandOver() {
		return nil // whoever appended just before is answered first
	}
	var input carried
	if ok && !r.isCancelled() {
		input, ok = r.carry()
	}
	if !ok || r.isCancelled() {
		r.carryFrom = workflow.GetInfo(r.ctx).GetCurrentHistoryLength() + carryAgain
		return nil
	}
	return workflow.NewContinueAsNewError(r.ctx, wire.WorkflowType, input)
}

// mustHandOver reports whether the history is so long that it cannot wait for
// the archive.
func (r *run) mustHandOver() bool {
	info := workflow.GetInfo(r.ctx)
	return info.GetCurrentHistoryLength() >= mustCarry || info.GetCurrentHistorySize() >= mustCarryBytes
}

// archiveSoon archives the log up to now and reports whether that came about.
func (r *run) archiveSoon() bool {
	ctx, cancel := workflow.WithCancel(r.ctx)
	defer cancel()
	done := r.archive(ctx)
	if ok, _ := workflow.AwaitWithTimeout(r.ctx, archivePatience, done.IsReady); !ok {
		workflow.GetLogger(r.ctx).Warn("The log is not archived yet, and the run goes on")
		return false
	}
	return done.Get(ctx, nil) == nil
}

// archive archives the log up to now.
func (r *run) archive(ctx workflow.Context) workflow.Future {
	if !r.archives {
		future, done := workflow.NewFuture(ctx)
		done.SetValue(nil)
		return future
	}
	options := workflow.GetActivityOptions(ctx)
	options.StartToCloseTimeout = activities.ArchiveTimeout
	options.RetryPolicy = &temporal.RetryPolicy{InitialInterval: 100 * time.Millisecond, MaximumInterval: 5 * time.Second}
	options.Summary = "archive up to " + r.session.LastEventID()
	return workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, options), acts.Archive,
		activities.ArchiveInput{ContextName: r.session.ContextName, Through: r.session.EventCount})
}

// archiveEnd archives the log of a session that has ended, however long that
// takes, unless more input comes before.
func (r *run) archiveEnd() {
	ctx, cancel := workflow.WithCancel(r.ctx)
	defer cancel()
	done := r.archive(ctx)
	_ = workflow.Await(r.ctx, func() bool { return done.IsReady() || !r.inbox.empty() })
}

// carry is what goes along; ok is false when it is too much.
func (r *run) carry() (_ carried, ok bool) {
	c := carried{UpdatedAt: r.updatedAt, Status: r.status, Turns: r.turns, ShownAt: r.shownAt}
	for _, effect := range r.effects {
		// What else there is concerns a request that has ended.
		if start, ok := effect.(reducer.StartRequest); ok {
			c.Start = &start
		}
	}
	size, limit := 0, maxCarriedInbox
	if r.stores() {
		limit = wire.MaxStoredBytes
	}
	for _, s := range r.inbox.signals {
		if s.append != nil {
			// Its sender is told that the run has ended, and sends it again.
			s.payloads = s.append.payloads()
		}
		data, err := proto.MarshalOptions{Deterministic: true}.Marshal(s.payloads)
		if err != nil {
			panic(fmt.Sprintf("a signal cannot be written: %v", err))
		}
		if size += len(data); size > limit {
			return c, false
		}
		c.Inbox = append(c.Inbox, carriedSignal{s.name, data})
	}
	c.Session = pack(r.session)
	if len(c.Session) > maxCarriedSession && !r.stores() {
		rest := r.session
		rest.Reduced = reducer.ReducedContext{}
		c.Session, c.Recall = pack(rest), true
	}
	return c, true
}

func pack(session reducer.Session) []byte {
	packed, err := activities.Pack(session)
	if err != nil {
		panic(err.Error()) // it was checked event by event
	}
	return packed
}

// takeOver begins with what another run has handed over.
func (r *run) takeOver(c *carried) error {
	session, err := activities.Unpack(c.Session)
	if err != nil {
		panic(err.Error())
	}
	if err := r.begin(activities.OpenInput{
		ContextName: r.session.ContextName, ContinuedRunID: workflow.GetInfo(r.ctx).ContinuedExecutionRunID, Recall: c.Recall,
	}); err != nil {
		return err
	}
	if c.Recall {
		session.Reduced = r.session.Reduced
	}
	session.Rules = r.session.Rules
	r.session = session
	r.updatedAt, r.status, r.turns, r.shownAt = c.UpdatedAt, c.Status, c.Turns, c.ShownAt
	var before []signal
	for _, s := range c.Inbox {
		payloads := &commonpb.Payloads{}
		if err := proto.Unmarshal(s.Payloads, payloads); err != nil {
			panic(fmt.Sprintf("a signal that was handed over cannot be read: %v", err))
		}
		before = append(before, signal{name: s.Name, payloads: payloads})
	}
	r.inbox.signals = append(before, r.inbox.signals...)
	if c.Start != nil {
		r.effects = append(r.effects, *c.Start)
	}
	return nil
}
