package rig

import (
	"context"
	"iter"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	sdkclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
)

// watch follows contexts as a terminal client does, and bare workflows.
func watch(s *self) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	contexts, err := client.Dial(ctx, client.Config{Address: s.Temporal, NATSURL: s.NATS, BlobURL: s.Blobs})
	if err != nil {
		return err
	}
	defer contexts.Shutdown()
	temporal, err := dial(ctx, s.Temporal)
	if err != nil {
		return err
	}
	defer temporal.Close()
	s.report(Observation{Kind: Ready, At: time.Now()})
	for {
		o, ok := s.next()
		if !ok {
			return nil
		}
		if o.Bare {
			go s.watchBare(ctx, temporal, o.Follow)
			continue
		}
		if o.Gateway != "" {
			go s.watchContext(ctx, o.Follow, eventStream(ctx, o.Gateway, o.Follow))
			continue
		}
		c, err := contexts.Open(o.Follow)
		if err != nil {
			return err
		}
		go s.watchContext(ctx, c.Name(), c.Follow(ctx, client.FollowOptions{Deltas: true}))
	}
}

func (s *self) watchContext(ctx context.Context, name string, events iter.Seq2[event.Event, error]) {
	newest := event.UserMessage{}
	keys := map[string]string{} // message keys by request
	seen := map[string]*tokenTimes{}
	ended := func(requestID, how string) {
		if seen[requestID] == nil {
			seen[requestID] = &tokenTimes{}
		}
		s.report(seen[requestID].ended(keys[requestID], how))
		delete(seen, requestID)
		delete(keys, requestID)
	}
	for e, err := range events {
		if err != nil {
			if ctx.Err() == nil {
				s.report(Observation{Kind: Broken, Key: name, At: time.Now(), Value: err.Error()})
			}
			return
		}
		switch body := e.Body.(type) {
		case event.SystemPrompt:
			s.report(Observation{Kind: Watching, Key: name, At: time.Now()})
		case event.UserMessage:
			newest = body
		case event.LLMRequestStarted:
			keys[body.RequestID] = KeyOf(newest.Content)
		case event.TextDelta:
			if seen[body.RequestID] == nil {
				seen[body.RequestID] = &tokenTimes{}
			}
			seen[body.RequestID].token(body.Delta)
		case event.AssistantMessage:
			keys[body.RequestID], _ = Answered(body.Content)
		case event.LLMRequestCompleted:
			ended(body.RequestID, "completed")
		case event.LLMRequestInterrupted:
			ended(body.RequestID, "interrupted")
		case event.LLMRequestFailed:
			ended(body.RequestID, "failed: "+body.Error)
		}
	}
}

func (s *self) watchBare(ctx context.Context, temporal sdkclient.Client, workflowID string) {
	keys := map[int64]string{} // message keys by the id of the scheduling history event
	history := temporal.GetWorkflowHistory(ctx, workflowID, "", true, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for history.HasNext() {
		h, err := history.Next()
		if err != nil {
			if ctx.Err() == nil {
				s.report(Observation{Kind: Broken, Key: workflowID, At: time.Now(), Value: err.Error()})
			}
			return
		}
		switch {
		case h.GetWorkflowExecutionStartedEventAttributes() != nil:
			s.report(Observation{Kind: Watching, Key: workflowID, At: time.Now()})
		case h.GetActivityTaskScheduledEventAttributes() != nil:
			keys[h.GetEventId()] = keyOfCall(h)
		case h.GetActivityTaskCompletedEventAttributes() != nil:
			scheduled := h.GetActivityTaskCompletedEventAttributes().GetScheduledEventId()
			s.report(Observation{Kind: Ended, Key: keys[scheduled], At: time.Now(), Value: "completed"})
			delete(keys, scheduled)
		}
	}
}

func keyOfCall(h *historypb.HistoryEvent) string {
	var message string
	_ = converter.GetDefaultDataConverter().FromPayloads(h.GetActivityTaskScheduledEventAttributes().GetInput(), &message)
	return KeyOf(message)
}
