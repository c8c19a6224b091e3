// Package hook lets the operator of a worker check, change and refuse the requests to models and
// their answers.
//
//	guard := hook.Hook{
//		Name: "guard",
//		Before: func(ctx context.Context, r hook.Request) (hook.Verdict, error) {
//			newest := r.Messages[len(r.Messages)-1]
//			if strings.Contains(newest.Content, "password") {
//				return hook.Refuse("the message contains a password"), nil
//			}
//			return hook.Verdict{}, nil
//		},
//	}
//	worker := contexts.NewWorker(temporal, contexts.Options{Hooks: []hook.Hook{guard}, …})
//
// Package hook/webhook makes hooks from HTTPS endpoints.
//
// # When hooks run
//
// Hooks run on the worker, for every attempt of every context: the first one, retries, those of the
// fallback, and each step with tools. [Hook.Before] hooks run in order before the request is sent,
// and each sees the changes of those before it. [Hook.After] hooks run in order when the answer is
// complete, before anything of it is recorded and before its tool calls are executed. Hooks with
// [Hook.Beside] run at the same time as the model, all at once, and see the changes of all Before
// hooks. They cannot change the request, but stop the answer when they refuse it.
//
// A message that a hook refused stays in the conversation, and the next request contains it. A hook
// that refuses by content checks the messages after the newest answer, or replaces the content of
// older ones.
//
// # What is recorded
//
// The log has an [event.HookApplied] for each hook that changed or refused something, or that failed
// and let the attempt pass. The change of a request is in the log before the model receives it. A
// hook that lets an attempt pass unchanged costs no event.
//
// A refusal ends the request with an event.LLMRequestFailed of the kind event.FailureRefusedByHook.
// There is no retry and no fallback.
//
// A changed answer loses its reasoning and provider state, which could repeat what the hook
// removed.
//
// # Partial answers
//
// After hooks also check the text of an interrupted answer ([Response.Partial]), and Beside hooks
// complete their check of it. They have up to [PartialTimeout] for that. If they refuse the text or
// do not answer in time, nothing of it is recorded. [Hook.OnFailure] Open keeps the text if a hook
// does not answer.
//
// # Streaming
//
// Without [Hook.Withhold], viewers see the answer while it streams, and then the recorded one. With
// it, nobody sees a delta before the verdict: the answer of a Beside hook starts to stream when the
// hook has let it pass, and that of an After hook appears when it is complete.
//
// # Failures
//
// An error, a panic, an invalid verdict and a timeout are failures of the hook. [Hook.OnFailure]
// decides whether the attempt fails, to be retried by the settings of the context, or passes. Hooks
// count towards the timeout of the attempt. When a request is interrupted or its worker stops, the
// context of a Before hook is cancelled at once. A function that ignores the end of its context is
// abandoned.
package hook
