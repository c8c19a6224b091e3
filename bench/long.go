package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"
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

// measured are the turns at which the history is measured, each with the nine turns around it.
var measured = []int{10, 300, 4990}

// long has a conversation of 5,000 turns over many runs, measures its histories, and continues it
// on a new worker.
func long(r *runner) error {
	turns := 5000
	if r.quick {
		turns = 310
	}
	compared := r.times(100)
	const name = "long"
	old := r.context(name)
	for i := range turns - compared {
		m := message(fmt.Sprintf("long-%d", i))
		if !isMeasured(i) {
			m.Every = 0
		}
		if _, err := old.turn(m); err != nil {
			return err
		}
	}
	if err := r.compareAges(old, compared); err != nil {
		return err
	}
	if err := r.measureHistory(name, turns); err != nil {
		return err
	}

	var replay samples
	for i := range r.times(10) {
		if err := r.replaceWorker(); err != nil {
			return err
		}
		took, err := old.turn(rig.Message{Key: fmt.Sprintf("replay-%d", i), Tokens: 1})
		if err != nil {
			return err
		}
		replay.add(took.toEnd)
	}
	r.report.add("replay_ms_1000_turns", "ms", replay)
	return nil
}

func isMeasured(turn int) bool {
	return slices.ContainsFunc(measured, func(at int) bool { return turn > at-5 && turn <= at+5 })
}

func (r *runner) compareAges(old *talker, n int) error {
	var late, early samples
	var young *talker
	for i := range n {
		if i%10 == 0 {
			young = r.context(fmt.Sprintf("young-%d", i))
			for j := range 5 {
				if _, err := young.turn(rig.Message{Key: fmt.Sprintf("%s-grows-%d", young.name, j), Tokens: 1}); err != nil {
					return err
				}
			}
		}
		aged, err := old.turn(message(fmt.Sprintf("old-%d", i)))
		if err != nil {
			return err
		}
		fresh, err := young.turn(message(fmt.Sprintf("young-%d", i)))
		if err != nil {
			return err
		}
		late.add(aged.toRequest)
		early.add(fresh.toRequest)
	}
	r.report.add("signal_to_request_turn_10_ms", "ms", early)
	if !r.quick {
		r.report.add("signal_to_request_turn_5000_ms", "ms", late)
	}
	return nil
}

// A turn adds the history events from its message up to the next message.
func (r *runner) measureHistory(name string, turns int) error {
	ctx, cancel := context.WithTimeout(r.ctx, time.Minute)
	defer cancel()
	costs, err := turnCosts(ctx, r.rig.Temporal, wire.WorkflowID(name))
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
		r.report.add(fmt.Sprintf("history_bytes_per_turn_%d", at), "bytes", beyond)
	}
	r.report.add("history_events_per_turn", "events", events)
	r.report.add("history_raw_bytes_per_turn", "bytes", raw)
	return nil
}

type turnCost struct {
	events, bytes int
	// text is the number of bytes taken by the message and the answer.
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
			// The text has no characters that JSON escapes.
			cost.text += len(text) * bytes.Count(data, []byte(text))
		}
	}
	return cost, nil
}

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
