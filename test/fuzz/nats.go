package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/stream"
)

func (t *target) subject(kind string) string { return "chronicle.default." + t.name + "." + kind }

// forgeDelta publishes deltas of the running or another request.
func forgeDelta(_ context.Context, t *target) error {
	request, attempt := t.request(), pick(t.rand, 1, 1, 1, 2, 9, -1, 1<<40)
	for range pick(t.rand, 1, 5, 50) {
		delta := map[string]any{
			"_tag": pick(t.rand, "TextDeltaEvent", "TextDeltaEvent", "ToolProgressEvent", "ReasoningDeltaEvent"), "requestId": request, "attempt": attempt,
			"index": pick(t.rand, 0, 1, 2, 100, -1, 1<<40), "delta": words(t.rand, pick(t.rand, 1, 100, 150<<10, 800<<10)), "reset": t.rand.IntN(2) == 0,
			"throughEventId": t.place(), "afterEventId": t.place(), "toolCallId": t.call("x"), "text": words(t.rand, pick(t.rand, 1, 300<<10)),
		}
		if t.rand.IntN(4) == 0 {
			delta["reasoning"] = words(t.rand, 1000)
		}
		data, err := json.Marshal(delta)
		if err != nil {
			return err
		}
		if err := t.nats.Publish(t.subject("delta"), data); err != nil {
			return err
		}
	}
	return t.nats.Flush()
}

// forgeParts responds to requests for the text of an answer with more parts than an answer has.
func forgeParts(_ context.Context, t *target) error {
	announced := pick(t.rand, 30, 1<<30)
	part := []byte(strings.Repeat("p", 900<<10))
	sub, err := t.nats.Subscribe(t.subject("ask"), func(m *nats.Msg) {
		for number := 1; number <= 30; number++ {
			header := nats.Header{"Chronicle-Part": {fmt.Sprintf("%s %d %d", "forged", number, announced)}}
			_ = m.RespondMsg(&nats.Msg{Header: header, Data: part}) // an error means a closed connection
		}
	})
	if err != nil {
		return err
	}
	context.AfterFunc(t.life, func() { _ = sub.Unsubscribe() })
	// A gap makes followers ask.
	data, _ := json.Marshal(map[string]any{"_tag": "TextDeltaEvent", "requestId": t.request(), "attempt": 1, "index": 1 << 20, "delta": "gap"})
	return t.nats.Publish(t.subject("delta"), data)
}

func forgeStop(_ context.Context, t *target) error {
	stop := map[string]any{"stop": stream.Stop{
		RequestID: t.request(), Reason: pick(t.rand, event.ReasonNewUserInput, event.ReasonCancelled, event.ReasonTimeout, "x"), Attempt: t.rand.IntN(4),
		Unsent: t.rand.IntN(2) == 0,
	}}
	data, err := json.Marshal(stop)
	if err != nil {
		return err
	}
	for range pick(t.rand, 1, 3, 30) {
		if err := t.nats.Publish(t.subject("ask"), data); err != nil {
			return err
		}
	}
	return t.nats.Flush()
}

func publishGarbage(_ context.Context, t *target) error {
	for range 20 {
		message := &nats.Msg{Subject: t.subject(pick(t.rand, "delta", "ask", "x")), Data: t.malformed(), Reply: pick(t.rand, "", t.subject("delta"), t.subject("ask"))}
		if len(message.Data) > 900<<10 {
			message.Data = message.Data[:900<<10]
		}
		message.Header = nats.Header{"Chronicle-Part": {pick(t.rand, "", "x", "a 1 1", "a -1 0", "a 2 1", "a 1 99999999999999999999")}}
		if err := t.nats.PublishMsg(message); err != nil {
			return err
		}
	}
	return t.nats.Flush()
}
