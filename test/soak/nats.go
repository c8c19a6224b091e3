package main

import (
	"context"
	"encoding/json"

	"github.com/nats-io/nats.go"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/stream"
)

func (u *user) subject(kind string) string { return "chronicle.default." + u.name() + "." + kind }

// forgeDelta publishes deltas of the running or another request.
func forgeDelta(_ context.Context, u *user) error {
	request, attempt := u.request(), pick(u.rand, 1, 1, 1, 2, 9, -1, 1<<40)
	for range pick(u.rand, 1, 5, 50) {
		delta := map[string]any{
			"_tag": pick(u.rand, "TextDeltaEvent", "TextDeltaEvent", "ToolProgressEvent", "ReasoningDeltaEvent"), "requestId": request, "attempt": attempt,
			"index": pick(u.rand, 0, 1, 2, 100, -1, 1<<40), "delta": words(u.rand, pick(u.rand, 1, 100, 150<<10, 800<<10)), "reset": u.rand.IntN(2) == 0,
			"throughEventId": u.place(), "afterEventId": u.place(), "toolCallId": u.call("x"), "text": words(u.rand, pick(u.rand, 1, 300<<10)),
		}
		if u.rand.IntN(4) == 0 {
			delta["reasoning"] = words(u.rand, 1000)
		}
		data, err := json.Marshal(delta)
		if err != nil {
			return err
		}
		if err := u.nats.Publish(u.subject("delta"), data); err != nil {
			return err
		}
	}
	return u.nats.Flush()
}

func forgeStop(_ context.Context, u *user) error {
	stop := map[string]any{"stop": stream.Stop{
		RequestID: u.request(), Reason: pick(u.rand, event.ReasonNewUserInput, event.ReasonCancelled, event.ReasonTimeout, "x"), Attempt: u.rand.IntN(4),
		Unsent: u.rand.IntN(2) == 0,
	}}
	data, err := json.Marshal(stop)
	if err != nil {
		return err
	}
	for range pick(u.rand, 1, 3, 30) {
		if err := u.nats.Publish(u.subject("ask"), data); err != nil {
			return err
		}
	}
	return u.nats.Flush()
}

func publishGarbage(_ context.Context, u *user) error {
	for range 20 {
		message := &nats.Msg{Subject: u.subject(pick(u.rand, "delta", "ask", "x")), Data: u.malformed(), Reply: pick(u.rand, "", u.subject("delta"), u.subject("ask"))}
		if len(message.Data) > 900<<10 {
			message.Data = message.Data[:900<<10]
		}
		if err := u.nats.PublishMsg(message); err != nil {
			return err
		}
	}
	return u.nats.Flush()
}
