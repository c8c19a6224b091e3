package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/tool"
)

// A tool from a function, and what a worker does with it. In a program, the set is the field Tools of
// contexts.Options.
func ExampleNew() {
	type order struct {
		Number string `json:"number" jsonschema:"the number of an order, like A-1001"`
		Reason string `json:"reason,omitempty" jsonschema:"why the customer wants the money back"`
	}
	type refund struct {
		Number string `json:"number"`
		Cents  int    `json:"cents"`
		Key    string `json:"key"`
	}
	refundOrder, err := tool.New("refund_order", "Refund an order to the customer",
		func(ctx context.Context, in order) (refund, error) {
			if in.Number != "A-1001" {
				return refund{}, errors.New("no such order")
			}
			// The bank refunds once, however often it receives this key.
			return refund{Number: in.Number, Cents: 4200, Key: tool.ContextName(ctx) + "/" + tool.CallID(ctx)}, nil
		}, tool.Idempotent())
	if err != nil {
		log.Panic(err)
	}
	set, err := tool.NewSet(tool.Options{}, refundOrder)
	if err != nil {
		log.Panic(err)
	}

	offered, err := set.Offer(context.Background(), activities.OfferRequest{
		ContextName: "demo", Config: event.SetTools{Tools: event.ToolList{{Pattern: "refund_*"}}},
	})
	if err != nil {
		log.Panic(err)
	}
	fmt.Println(offered[0].Name, string(offered[0].Parameters))
	for _, arguments := range []string{`{"number":"A-1001"}`, `{"number":"B-1"}`, `{"id":7}`} {
		result := set.Call(context.Background(), activities.ToolCallRequest{
			ContextName: "demo", ToolCallID: "call_1", Name: "refund_order", Arguments: json.RawMessage(arguments),
		})
		fmt.Println(string(result.Value) + string(result.Error))
	}
	// Output:
	// refund_order {"type":"object","properties":{"number":{"type":"string","description":"the number of an order, like A-1001"},"reason":{"type":"string","description":"why the customer wants the money back"}},"required":["number"],"additionalProperties":false}
	// {"number":"A-1001","cents":4200,"key":"demo/call_1"}
	// "no such order"
	// "invalid arguments: root: additional properties 'id' not allowed; root: missing property 'number'"
}
