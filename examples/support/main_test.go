package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/llm/baseurl"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/worker/chronicletest"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

// The model answers the newest message of the customer, or the result of the call for it.
func answer(r llmtest.Request) llmtest.Step {
	call := func(name, arguments string) llmtest.Step {
		return llmtest.Calls(llmtest.Call{ID: "call_" + name, Name: name, Arguments: arguments})
	}
	last, text := r.Messages[len(r.Messages)-1], r.LastUser()
	switch {
	case last.Role == "tool":
		return llmtest.Answer("I see: ", last.Content)
	case strings.Contains(text, "1111"):
		return llmtest.Answer("Thank you for your card number")
	case strings.Contains(text, "Where"):
		return call("find_order", `{"number":"A-1001"}`)
	case strings.Contains(text, "little"):
		return call("refund_order", `{"number":"A-1001","cents":100}`)
	case strings.Contains(text, "refund"):
		return call("refund_order", `{"number":"A-1002","cents":9900}`)
	case strings.Contains(text, "Goodbye"):
		return llmtest.Answer("Goodbye!").Usage(60_000, 10)
	default:
		return llmtest.Error(401, "invalid_api_key", "no")
	}
}

func TestAConversationWithACustomer(t *testing.T) {
	server, backup := chronicletest.Start(t, llmtest.Func(answer)), llmtest.Start(t, llmtest.Answer("I am the other model"))
	config := server.Config()
	config.TaskQueue = "support"
	conn, err := contexts.Connect(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	stop, err := startWorker(conn, llm.New(llm.Options{
		Providers: []llm.Provider{{ID: "backup", BaseURL: baseurl.MustParse(backup.URL)}},
		Defaults:  server.Defaults(),
	}))
	require.NoError(t, err)
	t.Cleanup(stop)
	customer, err := conn.Client().Open("customer")
	require.NoError(t, err)

	says := func(lines ...string) string {
		t.Helper()
		var out bytes.Buffer
		require.NoError(t, talk(t.Context(), customer, strings.NewReader(strings.Join(lines, "\n")), &out, settings("backup", "other")...))
		return out.String()
	}
	require.Contains(t, says("Where is my order?"), `I see: {"cents":4200,"number":"A-1001"}`)
	require.Equal(t, "Where is my order?\n\n[sent from the page \"/orders\"]", server.Model.Requests()[0].LastUser())
	require.Contains(t, says("I want a little back"), "refunded 100 cents (customer/call_refund_order")
	require.Regexp(t, `Approve the refund\? \(y/n\)\nI see: "?denied`, says("I want a refund", "n"))
	require.Contains(t, says("Now refund it", "y"), "refunded 9900 cents")
	require.Contains(t, says("My card is 4111 1111 1111 1111"), "Sorry: hook card-numbers: please do not send card numbers")
	require.Equal(t, "I am the other model\n", says("Is anybody there?"))
	require.Equal(t, "Goodbye!\n", says("Goodbye"))
	require.Contains(t, says("Where is my order?"), "Sorry: budget exceeded: context: limit 50000 tokens")
}
