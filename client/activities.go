package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Activities use contexts as steps of workflows of your own. Register them with a worker of another task queue than that
// of contexts: waiting activities would take slots that the answers need.
//
//	w := worker.New(temporal, "orders", worker.Options{})
//	w.RegisterActivity(client.NewActivities(c))
type Activities struct{ client *Client }

// NewActivities returns activities that use a client.
func NewActivities(c *Client) *Activities { return &Activities{c} }

// Question is the input of [Activities.Ask].
type Question struct {
	ContextName string        `json:"contextName"`
	Events      []event.Event `json:"events"`
}

// defaultBeat is the interval of heartbeats without a heartbeat timeout. The response to one reports a cancellation.
const defaultBeat = 10 * time.Second

// Ask is [Context.Answer] as an activity. It waits as long as the answer takes, with its tools and approvals. Its
// heartbeats carry the newest event of the turn. Set a heartbeat timeout, and a StartToCloseTimeout that is longer than
// the expiry of approvals:
//
//	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: 48 * time.Hour, HeartbeatTimeout: 30 * time.Second})
//	var contexts *client.Activities
//	err := workflow.ExecuteActivity(ctx, contexts.Ask, client.Question{ContextName: "demo", Events: events}).Get(ctx, &answer)
//
// All attempts of the activity ask once: events without a ClientEventID have one that is derived from the run id of the
// workflow and the id of the activity. An attempt after a timeout or on another worker waits for the same answer. This
// holds while the context has fewer than 1,000 newer events with a ClientEventID (reducer.MaxRecent).
// When the activity is cancelled, the answer goes on.
//
// The error is a non-retryable *temporal.ApplicationError if the same question would have the same outcome. Its type is
// the tag of the event that ended the turn: [event.TagLLMRequestFailed], [event.TagLLMRequestInterrupted], whose details
// are what the model said before, or [event.TagInputRejected]. The type is "Invalid" for an invalid question, and
// "Unanswered" if the run of the context was terminated.
func (a *Activities) Ask(ctx context.Context, in Question) (string, error) {
	info := activity.GetInfo(ctx)
	if info.TaskQueue == a.client.options.TaskQueue {
		return "", invalid(fmt.Errorf("ask context %s: task queue %q is that of contexts, whose answers need its activity slots "+
			"(register Ask with a worker of another task queue)", in.ContextName, info.TaskQueue))
	}
	c, err := a.client.Open(in.ContextName)
	if err != nil {
		return "", invalid(fmt.Errorf("ask context %q: %w", in.ContextName, err))
	}
	body, err := json.Marshal(in.Events)
	if err != nil {
		return "", invalid(fmt.Errorf("ask context %s: %w", in.ContextName, err))
	}
	id := event.KeyedIDs(info.WorkflowExecution.RunID+"/"+info.ActivityID, body)
	for i := range in.Events {
		if in.Events[i].ClientEventID == "" {
			in.Events[i].ClientEventID = id(i)
		}
	}
	var newest atomic.Value
	newest.Store("")
	defer beatDuring(ctx, &newest)()
	answer, err := answerOf(noting(c.Ask(ctx, in.Events...), &newest))
	switch {
	case err == nil:
		return answer, nil
	case ctx.Err() != nil:
		return "", ctx.Err()
	}
	return "", final(fmt.Errorf("ask context %s: %w", in.ContextName, err))
}

// beatDuring sends heartbeats with the newest details until end is called.
func beatDuring(ctx context.Context, details *atomic.Value) (end func()) {
	interval := activity.GetInfo(ctx).HeartbeatTimeout / 3
	if interval == 0 {
		interval = defaultBeat
	}
	ended := make(chan struct{})
	var beats sync.WaitGroup
	beats.Go(func() {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-ended:
				return
			case <-ticker.C:
				activity.RecordHeartbeat(ctx, details.Load())
			}
		}
	})
	return func() {
		close(ended)
		beats.Wait()
	}
}

// noting stores the newest recorded event of a turn as a text.
func noting(turn iter.Seq2[event.Event, error], newest *atomic.Value) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for e, err := range turn {
			if e.ID != "" {
				newest.Store(e.ID + " " + string(e.Tag()))
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// final makes an error non-retryable unless another attempt may succeed.
func final(err error) error {
	var ended *TurnError
	switch {
	case errors.As(err, &ended):
		return temporal.NewNonRetryableApplicationError(err.Error(), string(ended.End.Tag()), nil, ended.Partial)
	case errors.Is(err, ErrRefused):
		return temporal.NewNonRetryableApplicationError(err.Error(), string(event.TagInputRejected), nil)
	case errors.Is(err, ErrUnanswered):
		return temporal.NewNonRetryableApplicationError(err.Error(), "Unanswered", nil)
	case errors.As(err, new(*event.FieldError)):
		return invalid(err)
	}
	return err
}

func invalid(err error) error {
	return temporal.NewNonRetryableApplicationError(err.Error(), "Invalid", nil)
}
