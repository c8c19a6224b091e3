// Package llmtest is a scripted, OpenAI-compatible model server for tests. It performs one
// step of its script per request:
//
//	model := llmtest.Start(t,
//		llmtest.Error(429, "rate_limit_exceeded", "slow down").RetryAfter("2"),
//		llmtest.Answer("Hel", "lo").CutAt(100),
//		llmtest.Answer("Hello", " there"),
//	)
//	// point the client at model.URL
//
// A step that must wait for the test waits for a [Gate] instead of sleeping:
//
//	gate := llmtest.NewGate()
//	model := llmtest.Start(t, llmtest.Answer("one", "two").HoldAfter(1, gate))
//	…
//	gate.Reached(ctx)    // "one" was sent
//	cancelTheRequest()
//	model.Aborted(ctx, 1) // the server noticed the cancellation
//
// An answer can call tools, and a step can check the tools that the request offers:
//
//	model := llmtest.Start(t,
//		llmtest.Answer("Let me look.").Calls(llmtest.Call{ID: "c1", Name: "fetch", Arguments: `{"url":"https://x.example"}`}).Offered("fetch"),
//		llmtest.Answer("It says hello.").Offered("fetch"),
//	)
//	…
//	model.Requests()[1].Results() // the result of the call
//
// [Func] computes each answer from the request, for many concurrent contexts.
//
// The test fails on a request beyond the end of the script, on a request to any other
// endpoint, and on steps that remain at its end.
package llmtest
