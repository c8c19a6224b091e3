// Package llmtest is a scripted, OpenAI-compatible model server: one step per request.
//
//	model := llmtest.Start(t,
//		llmtest.Error(429, "rate_limit_exceeded", "slow down").RetryAfter("2"),
//		llmtest.Answer("Hel", "lo").CutAt(100),
//		llmtest.Answer("Hello", " there"),
//	)
//	// point the client at model.URL
//
// A step waits for a [Gate] instead of sleeping:
//
//	gate := llmtest.NewGate()
//	model := llmtest.Start(t, llmtest.Answer("one", "two").HoldAfter(1, gate))
//	…
//	gate.Reached(ctx)    // "one" was sent
//	cancelTheRequest()
//	model.Aborted(ctx, 1) // the server noticed the cancellation
//
// Answers can call tools, and steps can check the tools that a request offers:
//
//	fetch := llmtest.Call{ID: "c1", Name: "fetch", Arguments: `{"url":"https://x.example"}`}
//	model := llmtest.Start(t,
//		llmtest.Answer("Let me look.").Calls(fetch).Offered("fetch"),
//		llmtest.Answer("It says hello.").Offered("fetch"),
//	)
//	…
//	model.Requests()[1].Results() // the result of the call
//
// [Func] computes each answer from the request, for many concurrent contexts.
//
// The test fails on a request beyond the script or to another endpoint, and on remaining steps.
package llmtest
