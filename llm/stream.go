package llm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/tracing"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// Result is an answer, or its beginning if the request failed.
type Result struct {
	Text      string
	Reasoning string
	// State for later requests to the same target. Nil: none is required, it is invalid or too large, or there
	// is no complete answer.
	State *event.ProviderState
	// Calls of a complete answer, in order, at most [MaxCalls]. Their results belong in the next request. An ID is that of
	// the provider, or else a new one, and unique. A Name is that of a [Tool], and Arguments are JSON, unless the model made
	// a mistake; a Name always has 1 to 64 of A-Z a-z 0-9 _ -.
	Calls []reducer.ToolCall
	// FinishReason is "stop", "tool_calls", "length", "content_filter", or "other" for a reason that is unknown. It is
	// empty with an error.
	FinishReason string
	// Usage is reported by the provider or estimated by the tokenizer. It is zero if the provider could not be
	// reached, or answered with an error before any text. If the stream broke off, ctx ended, or a token timeout
	// stopped the request before the provider reported it, it is an estimate. quirk.go lists the Quirks.
	event.Usage
}

// Stream sends the conversation and calls onDelta, unless it is nil, for each piece of text and of
// reasoning, in order, on the goroutine of the caller.
//
// Errors are of type [*Error]; the result then contains the text and the reasoning so far.
//
//   - If the caller cancels ctx, the error is of [KindCanceled] and wraps [context.Canceled] and the
//     cause. If its deadline passes, or no token arrives within FirstToken or Stall, it is of
//     [KindTimeout].
//   - The finish reason completes an answer, and so does [DONE] after a text or calls with whole objects. Later
//     failures of the connection are ignored.
//   - A finish reason of a failure is an error, and so is an unknown one of an answer without text and calls.
//   - A content filter causes [KindContentFilter] before any text; later, it ends the answer.
//   - An answer that does not match the response format causes [KindInvalidAnswer]; a refusal by
//     the model is a valid answer. An invalid schema causes [KindConfiguration].
//   - An answer with tool calls needs no text, and is not compared with the response format. If the
//     length limit or a content filter cuts it off, its calls are dropped, and its text is treated as
//     an answer without calls. It causes [KindInvalidAnswer] if the length limit cuts it off before any
//     text, or if it exceeds [MaxCalls] or [MaxArgumentBytes].
//   - An answer without text and calls causes [KindTruncated], or [KindInvalidAnswer] if the length limit cuts it off. After the
//     results of tools, it is complete.
//   - Tool calls are ignored if the target has no tools. Without text, they cause [KindToolCall].
//   - A request that is rejected because of a parameter that no setting asks for is sent again without the parameter.
func (t *Target) Stream(ctx context.Context, messages []reducer.Message, onDelta func(Delta)) (result Result, err error) {
	ctx, span := tracing.Start(ctx, trace.SpanKindClient, "chat", t.Model)
	defer func() { t.endSpan(span, messages, result, err) }()
	result, failure := t.send(ctx, messages, onDelta)
	sending := *t
	for range maxLessons {
		if failure == nil || result.hasBegun() {
			break
		}
		lesson := sending.learn(failure)
		if lesson == "" {
			break
		}
		sending.lessons = append(slices.Clip(sending.lessons), lesson)
		sending.quirks = sending.quirks.learned(sending.lessons)
		result, failure = sending.send(ctx, messages, onDelta)
	}
	if failure != nil {
		return result, failure
	}
	if len(sending.lessons) > len(t.lessons) {
		t.experience.remember(destination{t.BaseURL, t.Model}, sending.lessons)
	}
	return result, nil
}

func (r Result) hasBegun() bool { return r.Text+r.Reasoning != "" }

func (t *Target) send(ctx context.Context, messages []reducer.Message, onDelta func(Delta)) (Result, *Error) {
	if failure := t.checkTools(); failure != nil {
		return Result{}, failure
	}
	sent, err := t.render(ctx, t.prompt(messages))
	if err != nil {
		return Result{}, t.failBeforeAnswer(ctx, err)
	}
	if len(sent.messages) == 0 {
		return Result{}, &Error{ProviderID: t.ProviderID, Kind: KindBadRequest, Message: "the conversation has no message to send"}
	}
	check, failure := t.formatCheck()
	if failure != nil {
		return Result{}, failure
	}
	result, failure := t.answer(ctx, sent, isToolTurn(messages), check, onDelta)
	quirks := event.DistinctQuirks(result.Quirks, t.requestQuirks(messages))
	result.Usage = t.usage((*meter).count)
	result.Quirks = quirks
	if failure != nil && !result.hasBegun() {
		t.suspect(failure, sent, messages)
	}
	return result, failure
}

// isToolTurn reports whether the model has called tools since the newest user message.
func isToolTurn(messages []reducer.Message) bool {
	for i := len(messages) - 1; i >= 0 && messages[i].Role != reducer.RoleUser; i-- {
		if len(messages[i].ToolCalls) > 0 {
			return true
		}
	}
	return false
}

func (t *Target) answer(ctx context.Context, sent conversation, isToolTurn bool, check formatCheck, onDelta func(Delta)) (Result, *Error) {
	ctx, timer := t.startTokenTimer(ctx)
	defer timer.stop()
	parameters, err := t.parameters()
	if err != nil {
		return Result{}, t.failBeforeAnswer(ctx, err)
	}
	m := &meter{counter: t.counter, encoding: encodingOf(t.Model), sent: sent, parameters: prompting(parameters), maxOutput: outputLimit(parameters)}
	t.meter.Store(m)
	span, sentAt, isFirst := trace.SpanFromContext(ctx), time.Now(), true
	resp, err := t.post(ctx, body(parameters, sent.messages))
	if err != nil {
		if ctx.Err() == nil {
			m.refuse()
		}
		return Result{}, t.failBeforeAnswer(ctx, err)
	}
	stream := &chunkReader{events: newEventReader(resp.Body), resp: resp}
	defer stream.close()
	a := &assembly{meter: m, onDelta: onDelta, state: &stateReader{}}
	a.text.scrubber, a.reasoning.scrubber = t.scrubber(), t.scrubber()
	if t.thinkTags {
		a.tags = &thinkTags{}
	}
	for a.calls.tooLarge() == "" {
		var chunk chunk
		if chunk, err = stream.next(); err != nil {
			break
		}
		if isFirst {
			isFirst = false
			t.traceChunk(span, sentAt, chunk.ChatCompletionStreamResponse)
		}
		m.report(chunk.Usage)
		if len(chunk.choices) > 0 {
			timer.restart()
		}
		for i := range chunk.choices {
			a.add(&chunk.choices[i])
		}
	}
	a.end()
	stream.report(ctx, t, &a.quirks)
	var result Result
	result.Text, result.Reasoning = m.texts()
	if result.Text+result.Reasoning == "" && errors.As(err, new(*errorResponse)) {
		m.refuse()
	}
	failure := t.finish(ctx, &result, a, stream, isToolTurn, err)
	if failure == nil && len(result.Calls) == 0 && !a.isRefusal { // a refusal is the answer, whatever the response format
		failure = t.check(&result, check)
	}
	if failure == nil {
		result.State = t.state(a, result.Reasoning, len(result.Calls) > 0 || isToolTurn)
		if !m.isKnown() {
			a.quirks.add(quirkNoUsage)
		}
	}
	result.Quirks = a.quirks.list()
	return result, failure
}

// finish sets the calls and the finish reason of a complete answer.
func (t *Target) finish(ctx context.Context, result *Result, a *assembly, stream *chunkReader, isToolTurn bool, err error) *Error {
	failure := func(kind Kind, format string, args ...any) *Error {
		return &Error{ProviderID: t.ProviderID, Kind: kind, Message: t.clean(fmt.Sprintf(format, args...), maxMessage)}
	}
	hasCalls, offersTools := len(a.calls.calls) > 0, len(t.Tools) > 0
	isEmpty := result.Text == "" && !hasCalls
	given := a.finish().effective(isEmpty)
	isEOF := errors.Is(err, io.EOF) && ctx.Err() == nil
	if given.reason == "" && isEOF && stream.events.isDone && !isEmpty && a.calls.areObjects() {
		given.reason = endingNames[endComplete]
		a.quirks.add(quirkNoFinish)
	}
	end := given.ending()
	switch {
	case a.calls.tooLarge() != "":
		return failure(KindInvalidAnswer, "%s", a.calls.tooLarge())
	case given.reason == "" && isEOF:
		return failure(KindTruncated, "the answer ended without a finish reason")
	case given.reason == "":
		return t.fail(ctx, err)
	case end == endFailed:
		return failure(KindServer, "the provider failed in the middle of its answer (finish reason %s)", given)
	case end == endMalformed:
		return failure(KindMalformed, "the provider could not parse what the model wrote (finish reason %s)", given)
	case end == endRejected:
		return failure(KindBadRequest, "the provider rejected the request (finish reason %s)", given)
	case end == endFiltered && result.Text == "":
		return failure(KindContentFilter, "the provider's content filter stopped the answer (finish reason %s)", given)
	case end == endTooLong && result.Text == "":
		return failure(KindContextTooLong, "the conversation fills the context window (finish reason %s)", given)
	case isEmpty && (end == endUnknown || end == endCalls):
		return failure(KindTruncated, "the answer is empty, and its finish reason is %s", given)
	case isEmpty && stream.skipped > 0:
		return failure(KindTruncated, "the answer is empty, and has events that are not JSON")
	case isBlank(result.Text) && !hasCalls && end.isCut():
		return failure(KindInvalidAnswer, "the answer reached the maximum length before any text (raise maxTokens; finish reason %s)", given)
	case isBlank(result.Text) && !hasCalls && !isToolTurn && t.settings().ResponseFormat == nil:
		// After the results of tools, a model may have nothing to add. With a response format, the answer is repaired.
		return failure(KindTruncated, "the answer is empty (finish reason %s)", given)
	case hasCalls && !offersTools && result.Text == "":
		return failure(KindToolCall, "the answer has no text and calls the tool %q, although no tools were offered", a.calls.name())
	case hasCalls && offersTools && end.isCut() && result.Text == "":
		return failure(KindInvalidAnswer, "the answer reached the maximum length in the call of the tool %q (raise maxTokens)", a.calls.name())
	}
	if end == endUnknown {
		a.quirks.add(quirkFinish)
	}
	result.FinishReason = endingNames[end]
	switch {
	case hasCalls && !offersTools:
		a.quirks.add(quirkUnasked)
	case hasCalls && !end.isCut():
		result.Calls, a.extras, a.callIDs = a.calls.complete(t, &a.quirks)
		result.FinishReason = endingNames[endCalls]
	}
	return nil
}

// failBeforeAnswer also handles requests that cannot be encoded.
func (t *Target) failBeforeAnswer(ctx context.Context, err error) *Error {
	e := t.fail(ctx, err)
	if e.Kind == KindTruncated {
		e.Kind, e.Message = KindConfiguration, t.clean(err.Error(), maxMessage)
	}
	return e
}
