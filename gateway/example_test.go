package gateway_test

import (
	"fmt"
	"net/http/httptest"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
)

// A Gateway is an http.Handler. A program passes a *client.Client and calls Serve; the
// client of this example has the context demo with one message.
func Example() {
	c := fakeClient{log: newLog(event.UserMessage{Content: "Hello"})}
	g := gateway.New(c, gateway.Options{Hosts: []string{"chronicle.example"}})
	defer g.Close()

	response := httptest.NewRecorder()
	g.ServeHTTP(response, httptest.NewRequest("GET", "http://chronicle.example/contexts/demo/events", nil))
	fmt.Println(response.Code, response.Body)
	// Output:
	// 200 {"events":[{"_tag":"UserMessageEvent","id":"demo:0001","timestamp":"2026-01-02T15:04:05Z","contextName":"demo","content":"Hello"}]}
}
