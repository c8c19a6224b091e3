package main

import (
	"bytes"
	"context"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/proto"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// history returns the history entries of all runs of a context, the oldest first.
func (r *runner) history(name string) ([]*historypb.HistoryEvent, error) {
	ctx, cancel := context.WithTimeout(r.ctx, time.Minute)
	defer cancel()
	var all []*historypb.HistoryEvent
	for run, more := "", true; more; more = run != "" {
		var one []*historypb.HistoryEvent
		history := r.Temporal.GetWorkflowHistory(ctx, wire.WorkflowID(name), run, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for history.HasNext() {
			h, err := history.Next()
			if err != nil {
				return nil, fmt.Errorf("read the history of %s: %w", name, err)
			}
			one = append(one, h)
		}
		all = append(one, all...)
		run = one[0].GetWorkflowExecutionStartedEventAttributes().GetContinuedExecutionRunId()
	}
	return all, nil
}

// turnsOf splits a history at the messages, which are updates. The first part precedes the first message.
func turnsOf(history []*historypb.HistoryEvent) [][]*historypb.HistoryEvent {
	turns := [][]*historypb.HistoryEvent{nil}
	for _, h := range history {
		if h.GetWorkflowExecutionUpdateAcceptedEventAttributes() != nil {
			turns = append(turns, nil)
		}
		turns[len(turns)-1] = append(turns[len(turns)-1], h)
	}
	return turns
}

func sizeOf(history []*historypb.HistoryEvent) (bytes int) {
	for _, h := range history {
		bytes += proto.Size(h)
	}
	return bytes
}

// overheadOf returns the bytes of a turn without those of its message and its answer.
func overheadOf(turn []*historypb.HistoryEvent) (int, error) {
	var texts []string
	for _, h := range turn {
		events, err := eventlog.Decode(h)
		if err != nil {
			return 0, err
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
	overhead := sizeOf(turn)
	for _, h := range turn {
		data, err := proto.Marshal(h)
		if err != nil {
			return 0, err
		}
		for _, text := range texts {
			// The text has no characters that JSON escapes.
			overhead -= len(text) * bytes.Count(data, []byte(text))
		}
	}
	return overhead, nil
}
