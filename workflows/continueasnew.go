package workflows

import (
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/proto"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// A run continues as new before it reaches a limit of the server. This records no event. The next
// run receives the session and the unprocessed signals.
//
// If signals arrive during the last workflow task, the server fails that task with UnhandledCommand
// and repeats it. It rejects signals during the second attempt, which therefore succeeds, unless it
// blocks.

// maxContinuedInbox bounds the backlog in the input of the next run, in bytes.
const maxContinuedInbox = 24 << 20

// usage is the part of the server's limits that a run has used.
type usage struct {
	entries, bytes   int
	loaded           int // bytes of inputs that Load read; the history has references to them
	signals, updates int
}

func (u usage) reaches(limit usage) bool {
	return u.entries >= limit.entries || u.bytes >= limit.bytes || u.loaded >= limit.loaded || u.signals >= limit.signals || u.updates >= limit.updates
}

// By default, the server terminates a run at 51,200 entries or 50 MiB, and accepts at most 10,000 signals and
// 2,000 updates. The limits leave room for later input.
var (
	// softLimits apply between two attempts. Options.ContinueAfter of the activities overrides entries.
	softLimits = usage{entries: 4_096, bytes: 4 << 20, loaded: 16 << 20, signals: 3_000, updates: 1_000}
	// hardLimits apply always. Only a flood of input during an answer, or a turn with thousands of calls, reaches
	// them. The answer is then requested again, and running calls are lost.
	hardLimits = usage{entries: 40_000, bytes: 8 << 20, loaded: 48 << 20, signals: 6_000, updates: 1_900}
)

// limit says when a run must continue as new.
type limit int

const (
	none limit = iota
	whenIdle
	now
)

func (r *run) limit() limit {
	used, soft := r.usage(), softLimits
	if r.opened.ContinueAfter > 0 {
		soft.entries = r.opened.ContinueAfter
	}
	switch {
	case r.session.Ended:
		return none
	case used.reaches(hardLimits):
		return now
	case used.reaches(soft) || workflow.GetInfo(r.ctx).GetContinueAsNewSuggested():
		return whenIdle
	default:
		return none
	}
}

func (r *run) usage() usage {
	info := workflow.GetInfo(r.ctx)
	return usage{info.GetCurrentHistoryLength(), info.GetCurrentHistorySize(), r.loadedBytes, r.inbox.signalled, r.inbox.updated}
}

// isIdle reports whether nothing runs that the next run could not continue.
func (r *run) isIdle() bool { return r.attempt.future == nil && len(r.calls) == 0 }

// leavesInbox reports whether the run leaves its inbox to the next one. A shorter task admits fewer signals.
func (r *run) leavesInbox() bool { return r.inbox.size <= maxContinuedInbox && r.limit() == now }

// continueAsNew returns the error that starts the next run, or nil if this one has other work to do
// first.
func (r *run) continueAsNew() error {
	limit := r.limit()
	if limit == none || limit == whenIdle && !(r.isIdle() && r.isArchived()) {
		return nil
	}
	// Updates whose events are recorded return their results first.
	r.await(func() bool { return r.appends.unanswered == 0 })
	if r.hasResult() || r.isCancelled() || r.inbox.size > maxContinuedInbox || limit == whenIdle && r.inbox.hasUpdate() {
		return nil // process those first
	}
	r.measureContinuation()
	return workflow.NewContinueAsNewError(r.ctx, wire.WorkflowType, r.continuation(limit))
}

func (r *run) measureContinuation() {
	if workflow.IsReplaying(r.ctx) {
		return
	}
	used := r.usage()
	r.log(event.Line{Level: slog.LevelInfo, Message: "run continues as new", Fields: []any{"history_events", used.entries, "history_bytes", used.bytes}})
	r.metrics.Continuations.Add(1)
	r.metrics.HistoryEvents.Observe(float64(used.entries))
	r.metrics.HistoryBytes.Observe(float64(used.bytes))
	lag, delay := r.session.EventCount-r.archived.complete.through, time.Duration(0)
	if lag > 0 {
		delay = r.now().Sub(r.archived.complete.at)
	}
	r.metrics.ArchiveLag.Observe(float64(lag))
	r.metrics.ArchiveDelay.Observe(delay.Seconds())
}

// continuation is the input of a run that continues another.
type continuation struct {
	Session []byte `json:"session"` // for wire.Unpack
	// Scheduled and NotStarted are those of [reducer.Continued].
	Scheduled  bool              `json:"scheduled,omitempty"`
	NotStarted []string          `json:"notStarted,omitempty"`
	Ended      *endedAttempt     `json:"ended,omitempty"` // as in [run]
	Inbox      []continuedSignal `json:"inbox,omitempty"` // unprocessed, oldest first
	UpdatedAt  time.Time         `json:"updatedAt,omitzero"`
	Unarchived bool              `json:"unarchived,omitempty"` // the archive may lack earlier events
	Shown      shown             `json:"shown"`
	Trace      *traces           `json:"trace,omitempty"` // nil: no input or attempt has a trace
}

// continuedSignal is an unprocessed signal. Payloads is a serialized
// temporal.api.common.v1.Payloads.
type continuedSignal struct {
	Name     string `json:"name"`
	Payloads []byte `json:"payloads,omitempty"`
	Trace    string `json:"trace,omitempty"` // traceparent of the sender
	// Origin is the position after the input, and Unrecorded is as in [signal].
	Origin     wire.Taken `json:"origin,omitzero"`
	Unrecorded bool       `json:"unrecorded,omitempty"`
}

// decodeContinuation returns nil for a run that continues no other.
func decodeContinuation(info *workflow.Info, input converter.RawValue) (*continuation, error) {
	if info.ContinuedExecutionRunID == "" {
		return nil, nil
	}
	c := &continuation{}
	if err := json.Unmarshal(input.Payload().GetData(), c); err != nil {
		return nil, fmt.Errorf("decode the input of a run that continues another: %w", err)
	}
	return c, nil
}

func (r *run) continuation(limit limit) continuation {
	c := continuation{
		Session: pack(r.session), Ended: r.ended, Scheduled: r.attempt.future != nil, UpdatedAt: r.updatedAt,
		Shown: r.shown, Trace: r.trace.kept(), Unarchived: r.archived.isIncomplete || limit == now,
	}
	// The session determines all other effects, see reducer.Continued.
	for _, effect := range r.pending.effects {
		if call, ok := effect.(reducer.CallTool); ok {
			c.NotStarted = append(c.NotStarted, call.Call.ID)
		}
	}
	for _, s := range r.inbox.signals {
		if s.append.expire(r.now()) {
			continue
		}
		if s.append != nil {
			s.payloads = s.append.payloads() // the update fails with the run, and its sender repeats it
		}
		data, err := proto.MarshalOptions{Deterministic: true}.Marshal(s.payloads)
		if err != nil {
			panic(fmt.Sprintf("encode signal %s: %v", s.name, err))
		}
		s.origin.RunID = cmp.Or(s.origin.RunID, workflow.GetInfo(r.ctx).WorkflowExecution.RunID)
		c.Inbox = append(c.Inbox, continuedSignal{s.name, data, s.trace, s.origin, s.isUnrecorded})
	}
	return c
}

func pack(session reducer.Session) []byte {
	packed, err := wire.Pack(session)
	if err != nil {
		panic(err.Error()) // each event was validated
	}
	return packed
}

func (r *run) restore(c *continuation) error {
	session, err := wire.Unpack(c.Session)
	if err != nil {
		panic(err.Error())
	}
	if c.Trace != nil {
		r.trace = *c.Trace
	}
	if err := r.begin(activities.OpenInput{
		ContextName: r.name, ContinuedRunID: workflow.GetInfo(r.ctx).ContinuedExecutionRunID, After: session.EventCount,
		Unarchived: c.Unarchived,
	}); err != nil {
		return err
	}
	session.Rules = r.session.Rules
	r.session, r.ended = session, c.Ended
	r.updatedAt, r.shown = c.UpdatedAt, c.Shown
	if r.archived.isIncomplete = c.Unarchived; r.archived.isIncomplete {
		r.startArchiving()
	} else {
		r.archived.complete = r.position()
	}
	var continued []signal
	for _, s := range c.Inbox {
		payloads := &commonpb.Payloads{}
		if err := proto.Unmarshal(s.Payloads, payloads); err != nil {
			panic(fmt.Sprintf("decode signal %s of the previous run: %v", s.Name, err))
		}
		continued = append(continued, signal{name: s.Name, payloads: payloads, trace: s.Trace, origin: s.Origin, isUnrecorded: s.Unrecorded})
	}
	r.inbox.putFirst(continued...)
	r.beginTaking(len(continued) > 0)
	r.apply(reducer.Continued{At: r.now(), Scheduled: c.Scheduled, NotStarted: c.NotStarted, Options: r.options()})
	return nil
}
