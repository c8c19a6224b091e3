package llm_test

import (
	"context"
	"fmt"
	"net/http/httptest"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/llm/offline"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// A worker without a key uses the built-in stand-in.
func Example() {
	server := httptest.NewServer(offline.Handler(offline.Options{TokenDelay: -1}))
	defer server.Close()
	adapter := llm.New(llm.Options{
		Defaults: llm.Defaults{ProviderID: "offline", BaseURL: server.URL + "/v1", Model: offline.Model},
	})
	reduced := reducer.Reduce(reducer.Initial(), event.New(event.UserMessage{Content: "Please count to 3"}))

	target, err := adapter.Resolve(reduced.Config.Primary)
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := target.Stream(context.Background(), reduced.Messages, func(d llm.Delta) { fmt.Print(d.Text) })
	fmt.Println()
	fmt.Println(result.FinishReason, err)
	// Output:
	// I am the offline model built into Chronicle (no API key is set), so I only repeat. This is your 1st message: "Please count to 3". Counting to 3: 1 2 3.
	// stop <nil>
}
