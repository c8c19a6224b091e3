// Package llmtest is an OpenAI-compatible model server for tests. It does what
// its script says, request by request, and nothing else:
//
//	model := llmtest.Start(t,
//		llmtest.Error(429, "rate_limit_exceeded", "slow down").RetryAfter("2"),
//		llmtest.Answer("Hel", "lo").CutAt(100),
//		llmtest.Answer("Hello", " there"),
//	)
//	// point the client at model.URL
//
// A step that must wait for the test waits for a [Gate], never for a clock:
//
//	gate := llmtest.NewGate()
//	model := llmtest.Start(t, llmtest.Answer("one", "two").HoldAfter(1, gate))
//	…
//	gate.Reached(ctx)    // "one" was sent
//	cancelTheRequest()
//	model.Aborted(ctx, 1) // and the server saw it go
//
// [Func] answers by a function of the request, for many contexts at once.
//
// A request beyond the end of the script, a request for anything but chat
// completions and a step that nobody asked for each fail the test.
package llmtest
