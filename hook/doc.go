// Package hook lets the operator of a worker check, change and refuse the requests to models and
// their answers, and receive the recorded events.
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
//	worker, err := connection.NewWorker(contexts.Options{Hooks: []hook.Hook{guard}, …})
//
// A verdict comes from [Refuse], [AddInstructions], [ReplaceMessages], [ChangeRequest] or [ReplaceText].
// Package hook/webhook makes hooks from HTTPS endpoints.
//
// # When hooks run
//
// Hooks run on the worker, for every attempt of every context: the first one, retries, attempts of
// the fallback, each step with tools, and summaries of the conversation ([Request.Purpose]).
//   - [Hook.Before] hooks run in order before the request is sent. Each sees the changes of the
//     hooks before it. They run again if a message arrives in the meantime.
//   - Hooks with [Hook.Beside] run concurrently while the model answers. They see the changes of all
//     Before hooks. They cannot change the request; their refusal stops the answer.
//   - [Hook.After] hooks run in order when the answer is complete, before any of it is recorded and
//     before its tool calls are executed.
//
// A refused message stays in the conversation, and the next request contains it. A hook that refuses
// it again refuses all later requests. To prevent that, refuse only because of the newest message,
// and replace the content of older ones.
//
// # What is recorded
//
// The log has an [event.HookApplied] for each hook that changed or refused a request or an answer, or
// that failed and let the attempt pass. The worker reports the change of a request before it sends
// the request, and waits up to 5 s until Temporal has stored the report. A hook that lets an attempt
// pass unchanged causes no event.
//
// A refusal ends the request with an event.LLMRequestFailed of the kind event.FailureRefusedByHook.
// There is no retry and no fallback.
//
// A changed answer loses its reasoning and provider state, which could repeat what the hook
// removed.
//
// # Partial answers
//
// [Hook.After] hooks also check the text of an interrupted answer ([Response.Partial]), and running
// Beside hooks complete their check. They have up to [PartialTimeout] for that. If one refuses or fails,
// none of the text is recorded. With [Hook.OnFailure] Open, the text is recorded after a failure.
//
// # Streaming
//
// Without [Hook.Withhold], viewers see the original answer while it streams, and then the recorded
// one. With it, no delta is published before the verdict. If a Beside hook withholds, the answer
// starts to stream when all Beside hooks have let it pass. If an After hook withholds, viewers see
// only the recorded answer.
//
// # Failures
//
// An error, a panic, an invalid verdict and a timeout are failures of the hook. With
// [Hook.OnFailure] Open, the attempt then passes. Otherwise, the retry settings of the context apply.
// If a Before hook fails, the attempt is retried. If any other hook fails, the attempt keeps its answer,
// and only the hook is called again, until the timeout of the attempt. After the last retry, the
// request fails with the kind event.FailureHookFailed, without a fallback. An invalid verdict and an
// error that wraps [ErrBroken] are not retried.
//
// The time of hooks counts towards the timeout of the attempt; an attempt that times out is retried.
// When a request is interrupted or its worker stops, the context of a Before hook is cancelled at
// once. The worker does not wait for a function that ignores the end of its context.
//
// # Events
//
//	crm := hook.Hook{Name: "crm", OnEvent: func(ctx context.Context, e hook.Events) error {
//		return store(ctx, e.ContextName, e.RunID, e.Events)
//	}}
//
// [Hook.OnEvent] receives every recorded event of every context: in the order of the log, at least
// once, in batches ([Events]), one batch per run of a context at a time. The blob store has a cursor
// for each hook and context, under the name of the hook. It moves when OnEvent returns nil, so a
// delivery survives a killed worker, continue-as-new and a termination of the run. Hooks are
// independent of each other, and no request waits for them.
//
// After an error, a panic or a timeout, the same events are delivered again: after at most 1 s, then with
// a doubled delay of up to a minute, or after the delay of a [RetryAfterError]. With [Closed], that is
// repeated without a limit. With [Open], events are skipped after [Hook.SkipAfter], and the worker
// logs their ids. In Temporal, the pending activity Deliver of the context shows the failure. When a
// client closes a context, its run continues until the events are delivered.
//
// Duplicates occur when a worker dies or the cursor cannot be stored after a delivery, and for a
// moment when a run continues as new. [Events] describes how to recognize them, and the branch that
// a reset starts. Events of an abandoned branch that were not delivered before the reset are not
// delivered.
//
// A new hook receives the events of the next run of a context that begins on a worker with the hook, and
// of later runs; with [Hook.FromStart], it receives the whole log. A worker without the hook cannot
// deliver. If ten attempts of the activity Deliver in a row, about four minutes, reach only such workers, the
// activity ends. The next event of the context, or its next run, starts it again. A hook that is removed and
// added again continues at its cursor; another name starts anew.
package hook
