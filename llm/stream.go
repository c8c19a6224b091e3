package llm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"time"

	"github.com/sashabaranov/go-openai"
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
	// Calls of a complete answer, in order, at most [MaxCalls]. Their results belong in the next request.
	Calls []Call
	// FinishReason is the provider's ("stop", "length", "content_filter", …), "other" if it is long or has
	// unusual characters, "tool_calls" if there are calls, and empty with an error.
	FinishReason string
	// Usage is reported by the provider or estimated by the tokenizer. It is zero if the provider could not be
	// reached, or answered with an error before any text. If the stream broke off, ctx ended, or a token timeout
	// stopped the request before the provider reported it, it is an estimate.
	event.Usage
}

const finishError = "error" // reported by some servers for a failure

// Stream sends the conversation and calls onDelta, unless it is nil, for each piece of text and of
// reasoning, in order, on the goroutine of the caller.
//
// Errors are of type [*Error]; the result then contains the text and the reasoning so far.
//
//   - If the caller cancels ctx, the error is of [KindCanceled] and wraps [context.Canceled] and the
//     cause. If its deadline passes, or no token arrives within FirstToken or Stall, it is of
//     [KindTimeout].
//   - The finish reason completes an answer. Later failures of the connection are ignored.
//   - A content filter causes [KindContentFilter] before any text; later, it ends the answer.
//   - An answer that does not match the response format causes [KindInvalidAnswer]; a refusal by
//     the model is a valid answer. An invalid schema causes [KindConfiguration].
//   - An answer with tool calls needs no text, and is not compared with the response format. If the
//     length limit or a content filter cuts it off, its calls are dropped, and its text is treated as
//     an answer without calls. It causes [KindInvalidAnswer] if the length limit cuts it off before any
//     text, or if it exceeds [MaxCalls] or [MaxArgumentBytes].
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
		sending.lessons = sending.lessons.with(lesson)
		sending.quirks = sending.quirks.learned(sending.lessons)
		result, failure = sending.send(ctx, messages, onDelta)
	}
	if failure != nil {
		return result, failure
	}
	if sending.lessons != t.lessons {
		t.experience.remember(destination{t.BaseURL, t.Model}, sending.lessons)
	}
	return result, nil
}

func (r Result) hasBegun() bool { return r.Text+r.Reasoning != "" }

func (t *Target) send(ctx context.Context, messages []reducer.Message, onDelta func(Delta)) (Result, *Error) {
	if failure := t.checkTools(); failure != nil {
		return Result{}, failure
	}
	sent, err := t.render(ctx, t.prompt(messages), false)
	if err != nil {
		return Result{}, t.failBeforeAnswer(ctx, err)
	}
	if len(sent.json) == 0 {
		return Result{}, &Error{ProviderID: t.ProviderID, Kind: KindBadRequest, Message: "the conversation has no message to send"}
	}
	check, failure := t.formatCheck()
	if failure != nil {
		return Result{}, failure
	}
	result, failure := t.answer(ctx, sent, isToolTurn(messages), check, onDelta)
	result.Usage = t.usage((*meter).count)
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
	m := &meter{counter: t.counter, encoding: encodingOf(t.Model), sent: sent, parameters: t.prompting(parameters), maxOutput: outputLimit(parameters)}
	t.meter.Store(m)
	t.counter.load(m.encoding)
	span, sentAt, isFirst := trace.SpanFromContext(ctx), time.Now(), true
	resp, err := t.post(ctx, body(parameters, sent.json))
	if err != nil {
		if ctx.Err() == nil {
			m.refuse()
		}
		return Result{}, t.failBeforeAnswer(ctx, err)
	}
	stream := newChunkReader(resp)
	defer stream.close()
	state := &stateReader{rule: t.quirks.state}

	var result Result
	var tags thinkTags
	var calls callReader
	var joiners [2]joiner // of the text and of the reasoning
	take := func(delta Delta) {
		m.write(delta)
		if onDelta != nil {
			onDelta(delta)
		}
	}
	for {
		var chunk chunk
		chunk, err = stream.next()
		if err != nil {
			break
		}
		if isFirst {
			isFirst = false
			traceChunk(span, sentAt, chunk.ChatCompletionStreamResponse)
		}
		m.report(chunk.Usage)
		if len(chunk.choices) > 0 {
			timer.restart()
			state.read(&chunk.choices[0])
		}
		for _, choice := range chunk.choices {
			calls.read(&choice.Delta, m.writeCall)
			if thought := joiners[1].add(choice.Delta.ReasoningContent); thought != "" {
				take(Delta{thought, true})
			}
			// A refusal is the answer, whatever the response format.
			if choice.Delta.Refusal != "" {
				check = nil
			}
			switch delta := joiners[0].add(choice.Delta.Content + choice.Delta.Refusal); {
			case delta == "":
			case t.thinkTags:
				tags.split(delta, take)
			default:
				take(Delta{Text: delta})
			}
			if choice.FinishReason != "" && choice.FinishReason != openai.FinishReasonNull {
				result.FinishReason = finishReason(string(choice.FinishReason))
			}
		}
		if calls.tooLarge() != "" {
			break
		}
	}
	if rest := joiners[1].rest(); rest != "" {
		take(Delta{rest, true})
	}
	tags.flush(take)
	if rest := joiners[0].rest(); rest != "" {
		take(Delta{Text: rest})
	}
	result.Text, result.Reasoning = m.texts()
	if result.Text+result.Reasoning == "" && errors.As(err, new(*errorResponse)) {
		m.refuse()
	}
	failure := t.finish(ctx, &result, &calls, err)
	if failure == nil {
		result.State = t.state(state, result.Reasoning, len(result.Calls) > 0 || isToolTurn)
	}
	if failure == nil && len(result.Calls) == 0 {
		failure = t.check(&result, check)
	}
	return result, failure
}

var word = regexp.MustCompile(`^[A-Za-z0-9_. -]{1,64}$`)

// finishReason returns "other" for a finish reason with more than 64 characters or with unusual ones: it is
// recorded, and a server must not be able to put arbitrary text there.
func finishReason(given string) string {
	if !word.MatchString(given) {
		return "other"
	}
	return given
}

// finish sets the calls of a complete answer, and clears the finish reason of any other.
func (t *Target) finish(ctx context.Context, result *Result, calls *callReader, err error) *Error {
	given := result.FinishReason
	result.FinishReason = ""
	failure := func(kind Kind, format string, args ...any) *Error {
		return &Error{ProviderID: t.ProviderID, Kind: kind, Message: t.clean(fmt.Sprintf(format, args...), maxMessage)}
	}
	hasCalls := len(calls.calls) > 0
	isCut := given == string(openai.FinishReasonLength) || given == string(openai.FinishReasonContentFilter)
	switch {
	case calls.tooLarge() != "":
		return failure(KindInvalidAnswer, "%s", calls.tooLarge())
	case given == finishError:
		return failure(KindServer, "the provider failed in the middle of its answer")
	case given == string(openai.FinishReasonContentFilter) && result.Text == "":
		return failure(KindContentFilter, "the provider's content filter stopped the answer")
	case given != "" && hasCalls && len(t.Tools) == 0 && result.Text == "":
		return failure(KindToolCall, "the answer has no text and calls the tool %q, although no tools were offered", calls.name())
	case given != "" && hasCalls && isCut && result.Text == "" && len(t.Tools) > 0:
		return failure(KindInvalidAnswer, "the answer reached the maximum length in the call of the tool %q (raise maxTokens)", calls.name())
	case given != "" && hasCalls && !isCut && len(t.Tools) > 0:
		result.Calls = calls.complete(t)
		result.FinishReason = string(openai.FinishReasonToolCalls)
		return nil
	case given != "":
		result.FinishReason = given
		return nil
	case errors.Is(err, io.EOF) && ctx.Err() == nil:
		return failure(KindTruncated, "the answer ended without a finish reason")
	default:
		return t.fail(ctx, err)
	}
}

// failBeforeAnswer also handles requests that go-openai rejects without sending them.
func (t *Target) failBeforeAnswer(ctx context.Context, err error) *Error {
	e := t.fail(ctx, err)
	if e.Kind == KindTruncated {
		e.Kind, e.Message = KindConfiguration, t.clean(err.Error(), maxMessage)
	}
	return e
}
