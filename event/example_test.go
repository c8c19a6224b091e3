package event_test

import (
	"encoding/json"
	"fmt"

	"github.com/seed-9ed7edd4/chronicle/event"
)

func ExampleDecodeInput() {
	events, err := event.DecodeInput([]byte(`{"_tag":"UserMessage","content":"Hello"}`))
	fmt.Println(events[0].Tag(), events[0].Body.(event.UserMessage).Content, err)

	_, err = event.DecodeInput([]byte(`{"_tag":"SetTimeout","timeoutMs":0}`))
	fmt.Println(err)
	// Output:
	// UserMessageEvent Hello <nil>
	// SetTimeoutEvent.timeoutMs: want 1 to 86400000, got 0
}

func ExampleEvent_MarshalJSON() {
	e := event.New(event.UserMessage{Content: "Hello"})
	e.ID, e.ContextName = event.FormatID("demo", 2), "demo"
	data, err := json.Marshal(e)
	fmt.Println(string(data), err)
	// Output: {"_tag":"UserMessageEvent","id":"demo:0002","contextName":"demo","content":"Hello"} <nil>
}

func ExampleRequestOf() {
	body := event.LLMRequestFailed{RequestID: "demo:r0001", Error: "status 503"}
	_, isEnd := event.Body(body).(event.RequestEnd)
	fmt.Println(event.RequestOf(body), isEnd)
	// Output: demo:r0001 true
}
