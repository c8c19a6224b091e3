package main

import (
	"bytes"
	"context"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/proto"

	"github.com/seed-9ed7edd4/chronicle/bench/rig"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/eventlog"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

// measured are the turns that are measured, ten around each; their history, too.
var measured = []int{10, 300, 4990}

// long has a conversation of 5,000 turns, which goes through many runs, looks at
// its histories, and lets a worker go on with it that has never heard of it.
func long(l *lab) error {
	turns := 5000
	if l.quick {
		turns = 310
	}
	const name = "long"
	talker := l.context(name)
	at := map[int]samples{}
	for i := 1; i <= turns; i++ {
		m := message(fmt.Sprintf("long-%d", i))
		if near(i) == 0 {
			m.Every = 0
		}
		took, err := talker.turn(m)
		if err != nil {
			return err
		}
		signal := at[near(i)]
		signal.add(took.toRequest)
		at[near(i)] = signal
	}
	l.report.add("signal_to_request_turn_10_ms", "ms", at[10])
	if !l.quick {
		l.report.add("signal_to_request_turn_5000_ms", "ms", at[4990])
	}
	if err := l.measureHistory(name, turns); err != nil {
		return err
	}

	var replay samples
	for i := range l.times(10) {
		if err := l.replaceWorker(); err != nil {
			return err
		}
		took, err := talker.turn(rig.Message{Key: fmt.Sprintf("replay-%d", i), Tokens: 1})
		if err != nil {
			return err
		}
		replay.add(took.toEnd)
	}
	l.report.add("replay_ms_1000_turns", "ms", replay)
	return nil
}

// near is the measured turn that a turn is near to; 0 when it is to none.
func near(turn int) int {
	for _, at := range measured {
		if turn > at-5 && turn <= at+5 {
			return at
		}
	}
	return 0
}

// measureHistory reports what a turn adds to a history: from the message that
// begins it to before the next one. What began the context stands before them.
func (l *lab) measureHistory(name string, turns int) error {
	ctx, cancel := context.WithTimeout(l.ctx, time.Minute)
	defer cancel()
	costs, err := turnCosts(ctx, l.rig.Temporal, wire.WorkflowID(name))
	if err != nil {
		return err
	}
	var events, raw samples
	for _, at := range measured {
		if at+5 > turns {
			continue
		}
		var beyond samples
		for turn := at - 4; turn <= at+5; turn++ {
			cost := costs[turn]
			events = append(events, float64(cost.events))
			raw = append(raw, float64(cost.bytes))
			beyond = append(beyond, float64(cost.bytes-cost.text))
		}
		l.report.add(fmt.Sprintf("history_bytes_per_turn_%d", at), "bytes", beyond)
	}
	l.report.add("history_events_per_turn", "events", events)
	l.report.add("history_raw_bytes_per_turn", "bytes", raw)
	return nil
}

// turnCost is what a turn adds to a history.
type turnCost struct {
	events, bytes int
	// text is how many of the bytes are the message and the answer, wherever
	// they stand.
	text int
}

func turnCosts(ctx context.Context, temporal client.Client, workflowID string) ([]turnCost, error) {
	history, err := wholeHistory(ctx, temporal, workflowID)
	if err != nil {
		return nil, fmt.Errorf("read the history of %s: %w", workflowID, err)
	}
	var turns [][]*historypb.HistoryEvent
	for _, h := range history {
		if h.GetWorkflowExecutionUpdateAcceptedEventAttributes() != nil {
			turns = append(turns, nil)
		}
		if last := len(turns) - 1; last >= 0 {
			turns[last] = append(turns[last], h)
		}
	}
	var costs []turnCost
	for _, turn := range turns {
		cost, err := costOf(turn)
		if err != nil {
			return nil, err
		}
		costs = append(costs, cost)
	}
	return costs, nil
}

func costOf(turn []*historypb.HistoryEvent) (turnCost, error) {
	cost := turnCost{events: len(turn)}
	var texts []string
	for _, h := range turn {
		events, err := eventlog.Decode(h)
		if err != nil {
			return cost, err
		}
		for _, e := range events {
			switch body := e.Body.(type) {
			case event.UserMessage:
				texts = append(texts, body.Content)
			case event.AssistantMessage:
				texts = append(texts, body.Content)
			}
		}
	}
	for _, h := range turn {
		data, err := proto.Marshal(h)
		if err != nil {
			return cost, err
		}
		cost.bytes += len(data)
		for _, text := range texts {
			// The text has no character that JSON writes in another way.
			cost.text += len(text) * bytes.Count(data, []byte(text))
		}
	}
	return cost, nil
}

// wholeHistory is the history of all runs of a workflow, the newest of which
// continues the others.
func wholeHistory(ctx context.Context, temporal client.Client, workflowID string) ([]*historypb.HistoryEvent, error) {
	var all []*historypb.HistoryEvent
	for run, more := "", true; more; more = run != "" {
		var one []*historypb.HistoryEvent
		history := temporal.GetWorkflowHistory(ctx, workflowID, run, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for history.HasNext() {
			h, err := history.Next()
			if err != nil {
				return nil, err
			}
			one = append(one, h)
		}
		all = append(one, all...)
		run = one[0].GetWorkflowExecutionStartedEventAttributes().GetContinuedExecutionRunId()
	}
	return all, nil
}
