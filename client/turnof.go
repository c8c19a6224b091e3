package client

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/reducer/usage"
)

// Turn is what became of a sent event.
type Turn struct {
	Status TurnStatus `json:"status"`
	// EventIDs are the event and those that followed it, up to the end of the turn; absent: the event is not recorded.
	EventIDs []string `json:"eventIds,omitempty" schema:"items.is=EventID"`
	// Answer is the text after all steps, or what the model had said before an interruption; absent before the end.
	Answer  string        `json:"answer,omitempty"`
	Usage   reducer.Usage `json:"usage"`             // of the request
	Failure *TurnFailure  `json:"failure,omitempty"` // why there is no complete answer; absent: there is one, or may be
	// Cursor is the newest event that was read, after which to follow the context; absent: the log is empty.
	Cursor string `json:"cursor,omitempty" schema:"is=EventID"`
}

// TurnFailure is why a turn was interrupted, failed or was rejected.
type TurnFailure struct {
	Kind      event.FailureKind `json:"kind,omitempty"` // of a failed request; absent: unknown
	Reason    string            `json:"reason"`
	Retryable bool              `json:"retryable,omitempty"` // the same request may succeed later
}

// TurnStatus is how far a [Turn] is.
type TurnStatus string

const (
	TurnQueued      TurnStatus = "queued"      // no request has the event
	TurnRunning     TurnStatus = "running"     // the model answers, or a worker calls tools
	TurnWaiting     TurnStatus = "waiting"     // a call waits for an approval or for the result of a client
	TurnCompleted   TurnStatus = "completed"   // the event is answered, or is recorded and requires no answer
	TurnInterrupted TurnStatus = "interrupted" // by newer input, a client or a timeout
	TurnFailed      TurnStatus = "failed"      // the request failed, or its run was terminated
	TurnRejected    TurnStatus = "rejected"    // the context did not accept the event
)

// isSettled reports whether the status changes only if a client acts.
func (s TurnStatus) isSettled() bool { return s != TurnQueued && s != TurnRunning }

// TurnLog is the part of a [Context] that [TurnOf] reads.
type TurnLog interface {
	Name() string
	EventsAndWaiting(ctx context.Context, from string, waiting func(Waiting)) iter.Seq2[event.Event, error]
	Follow(ctx context.Context, options FollowOptions) iter.Seq2[event.Event, error]
	UnattendedSince(ctx context.Context) (time.Time, error)
}

// TurnOf reports what became of a sent event, which id names: its event id or its ClientEventID, for which it reads the
// whole log. It returns when the turn has ended or waits for a client, but at the latest after wait. It requires no worker.
// The error is ErrNoEvent if the event is neither recorded nor waits for a worker, or one of [Context.Events].
func TurnOf(ctx context.Context, log TurnLog, id string, wait time.Duration) (Turn, error) {
	limited, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for {
		r := &turnReader{log: log, id: id, turn: newTurn([]string{id}), calls: map[string]string{}, approvals: map[string]bool{}, usage: usage.New(usage.ByContext)}
		err := r.read(ctx)
		isReset := false
		if err == nil && !r.Status.isSettled() && limited.Err() == nil {
			isReset, err = r.follow(ctx, limited)
		}
		if err != nil {
			return Turn{}, fmt.Errorf("get the turn of event %s of context %s: %w", event.Redact(id, 0), log.Name(), err)
		}
		if !isReset {
			r.Usage = r.usage.Total()
			return r.Turn, nil
		}
	}
}

// turnReader folds a log into a [Turn].
type turnReader struct {
	Turn
	log       TurnLog
	id        string
	isEventID bool
	from      string // the event before the first one that it reads; "": none
	turn      turn
	outcome   outcome
	isEnded   bool
	request   string // id of the request that has the event; "": none
	usage     *usage.Table
	calls     map[string]string // names of the tools of calls without a result, by id
	approvals map[string]bool   // the calls that wait for an approval
	isClients map[string]bool   // the tools that clients execute; nil: not known
}

func (r *turnReader) read(ctx context.Context) error {
	n := event.Counter(r.id)
	if r.isEventID = n > 0 && r.id == event.FormatID(r.log.Name(), n); r.isEventID && n > 1 {
		r.from = event.FormatID(r.log.Name(), n-1)
	} else {
		r.isClients = map[string]bool{}
	}
	var waiting Waiting
	for e, err := range r.log.EventsAndWaiting(ctx, r.from, func(w Waiting) { waiting = w }) {
		if err != nil {
			return err
		}
		r.add(e)
		if len(r.EventIDs) == 1 && r.isEventID && !isSent(e) {
			return fmt.Errorf("%w: a %s is not sent by clients", ErrNoEvent, e.Tag())
		}
		if r.isEnded {
			break
		}
	}
	if len(r.EventIDs) == 0 && (r.isEventID || !isStored(ctx, waiting, r.id)) {
		return ErrNoEvent
	}
	if len(r.EventIDs) > 0 && !r.isEnded {
		_, err := r.log.UnattendedSince(ctx)
		r.outcome.isLost = errors.Is(err, ErrUnanswered)
		r.isEnded = r.outcome.isLost
	}
	return r.conclude(ctx)
}

// isSent reports whether a client may have sent an event.
func isSent(e event.Event) bool {
	return e.Tag() == event.TagInputRejected || e.Tag().IsInput() && event.RequestOf(e.Body) == ""
}

// isStored reports whether an event is among the input that waits for a worker, or may be: not all of it is known.
func isStored(ctx context.Context, waiting Waiting, clientEventID string) bool {
	if waiting.Input == nil {
		return false
	}
	input := waiting.Input(ctx)
	return len(input) >= eventlog.MaxWaiting || slices.ContainsFunc(input, func(e event.Event) bool {
		return e.ClientEventID == clientEventID || e.ClientEventID == ""
	})
}

// follow reads what is recorded until the turn is settled or limited is done. After a reset, the caller must read the log
// again.
func (r *turnReader) follow(ctx, limited context.Context) (isReset bool, err error) {
	for e, err := range r.log.Follow(limited, FollowOptions{From: r.Cursor}) {
		switch {
		case limited.Err() != nil:
			return false, nil
		case err != nil:
			return false, err
		case event.Counter(e.ID) <= event.Counter(r.Cursor):
			return true, nil
		}
		r.add(e)
		if err := r.conclude(ctx); err != nil || r.Status.isSettled() {
			return false, err
		}
	}
	return false, nil
}

func (r *turnReader) add(e event.Event) {
	r.Cursor = e.ID
	if r.isEventID { // turn knows events by their ClientEventID
		if e.ClientEventID = ""; e.ID == r.id {
			e.ClientEventID = r.id
		}
	}
	if body, ok := e.Body.(event.SetTools); ok {
		r.setTools(body)
	}
	belongs, ends := r.turn.add(e)
	if !belongs {
		return
	}
	r.EventIDs, r.isEnded = append(r.EventIDs, e.ID), ends
	if body, ok := e.Body.(event.LLMRequestStarted); ok && r.turn.answeredBy(r.turn.through) {
		r.request = body.RequestID
	}
	about := event.RequestOf(e.Body)
	if !ends && (about != "" && about != r.request || e.Tag() == event.TagInputRejected) {
		return // it belongs to other input
	}
	r.outcome.apply(e)
	if about == r.request {
		r.usage.Add(e)
	}
	switch body := e.Body.(type) {
	case event.ToolCall:
		r.calls[body.ToolCallID] = body.ToolName
	case event.ToolResult:
		delete(r.calls, body.ToolCallID)
		delete(r.approvals, body.ToolCallID)
	case event.ApprovalRequested:
		r.approvals[body.ToolCallID] = true
	case event.ApprovalDecided:
		if delete(r.approvals, body.ToolCallID); body.ToolCallID == "" {
			clear(r.approvals)
		}
	}
}

func (r *turnReader) setTools(body event.SetTools) {
	r.isClients = map[string]bool{}
	for _, tool := range body.Tools {
		r.isClients[tool.Name] = tool.IsClient()
	}
}

// conclude sets the status, and at the end the answer.
func (r *turnReader) conclude(ctx context.Context) error {
	switch {
	case r.isEnded:
		r.end()
		return nil
	case r.request == "":
		r.Status = TurnQueued
		return nil
	case len(r.approvals) > 0:
		r.Status = TurnWaiting
		return nil
	}
	r.Status = TurnRunning
	if len(r.calls) > 0 && r.isClients == nil {
		if err := r.readTools(ctx); err != nil {
			return err
		}
	}
	for _, tool := range r.calls {
		if r.isClients[tool] {
			r.Status = TurnWaiting
		}
	}
	return nil
}

// readTools reads the tools of clients before the turn.
func (r *turnReader) readTools(ctx context.Context) error {
	r.isClients = map[string]bool{}
	for e, err := range r.log.EventsAndWaiting(ctx, "", func(Waiting) {}) {
		if err != nil {
			return err
		}
		if body, ok := e.Body.(event.SetTools); ok {
			r.setTools(body)
		}
		if e.ID == r.from {
			break
		}
	}
	return nil
}

func (r *turnReader) end() {
	r.Answer = r.outcome.text
	fail := func(status TurnStatus, failure TurnFailure) { r.Status, r.Failure = status, &failure }
	switch end := r.outcome.end.Body.(type) {
	case event.LLMRequestInterrupted:
		fail(TurnInterrupted, TurnFailure{Reason: string(end.Reason)})
	case event.LLMRequestFailed:
		fail(TurnFailed, TurnFailure{Kind: end.Kind, Reason: end.Error, Retryable: end.Retryable})
	default:
		r.Status = TurnCompleted
		if completed, ok := end.(event.LLMRequestCompleted); ok && completed.RequestID != r.request {
			fail(TurnInterrupted, TurnFailure{Reason: string(event.ReasonCancelled)})
		}
	}
	if r.outcome.isLost {
		fail(TurnFailed, TurnFailure{Kind: event.FailureUnavailable, Reason: ErrUnanswered.Error()})
	}
	if r.outcome.rejection != nil {
		fail(TurnRejected, TurnFailure{Reason: r.outcome.rejection.Reason})
	}
}
