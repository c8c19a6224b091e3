package hook_test

import (
	"context"
	"fmt"
	"regexp"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/hook"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

var cardNumber = regexp.MustCompile(`\d{4}([ -]?\d{4}){3}`)

// A hook that hides card numbers from models. In a program, it is one of the Hooks of contexts.Options.
func ExampleReplaceMessages() {
	masked := hook.Hook{
		Name: "card-numbers",
		Before: func(_ context.Context, r hook.Request) (hook.Verdict, error) {
			var replaced []event.ReplacedMessage
			for _, m := range r.Messages {
				if content := cardNumber.ReplaceAllString(m.Content, "[card]"); content != m.Content {
					replaced = append(replaced, event.ReplacedMessage{EventID: m.EventID, Content: content})
				}
			}
			if replaced == nil {
				return hook.Verdict{}, nil
			}
			return hook.ReplaceMessages(replaced, "a card number"), nil
		},
	}
	messages := []reducer.Message{{Role: reducer.RoleUser, EventID: "demo:0002", Content: "I pay with 4111 1111 1111 1111"}}
	verdict, err := masked.Before(context.Background(), hook.Request{Messages: messages})
	if err != nil {
		fmt.Println(err)
		return
	}
	changed, _, err := hook.Apply(verdict.Change.HookChange, messages, event.RequestSettings{})
	fmt.Println(changed[0].Content, err)
	// Output: I pay with [card] <nil>
}
