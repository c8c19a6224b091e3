package llm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"

	"github.com/sashabaranov/go-openai"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// Result is an answer, or its beginning if it failed.
type Result struct {
	Text string
	// Reasoning is the reasoning text that the provider returned.
	Reasoning string
	// State is the provider state of the answer for later requests to the same target. Nil if
	// the provider requires none, or if the answer is incomplete.
	State *event.ProviderState
	// FinishReason is the provider's: "stop", "length", "content_filter", …, or "other" if it
	// is not a word. Empty if the answer is incomplete.
	FinishReason string
	// Usage is that of the request, see [Target.Usage]. It is zero if no answer began.
	event.Usage
}

// finishError is the finish reason by which some servers report a failure.
const finishError = "error"

// Stream sends the conversation and calls onDelta, which may be nil, for each piece of the
// answer's text and of the model's reasoning, in order and on the same goroutine. The context
// bounds the request.
//
// Errors are of type [*Error]; the result then contains the text and the reasoning so far.
//
//   - If the caller cancels ctx, the error is [context.Canceled] and the cause of the
//     cancellation; if the deadline of ctx passes, it is of [KindTimeout].
//   - If no token arrives within the target's FirstToken or Stall, the error is of [KindTimeout]
//     and names the limit.
//   - The finish reason completes an answer. Later failures of the connection are ignored.
//   - If a content filter stops the answer before any text, the error is of
//     [KindContentFilter]; later, the answer ends with that finish reason.
//   - An answer that does not match the response format is an error of [KindInvalidAnswer]; a
//     refusal is a valid answer. An invalid schema is an error of [KindConfiguration].
//   - No tools are offered. If a model calls one anyway, the call is ignored: the text is the
//     answer, whatever the finish reason. Without text, the error is of [KindToolCall].
//   - If the provider rejects a request with provider state as malformed before any text, the
//     request is sent again without the state: signatures expire, for example when a provider
//     changes its keys.
func (t *Target) Stream(ctx context.Context, messages []reducer.Message, onDelta func(Delta)) (Result, error) {
	result, failure := t.send(ctx, messages, onDelta)
	if failure != nil && failure.Kind == KindBadRequest && result.Text+result.Reasoning == "" && t.sendsState(messages) {
		without := *t
		without.isStateless = true
		result, failure = without.send(ctx, messages, onDelta)
	}
	if failure != nil {
		return result, failure
	}
	return result, nil
}

// send renders the conversation and sends it once.
func (t *Target) send(ctx context.Context, messages []reducer.Message, onDelta func(Delta)) (Result, *Error) {
	sent, err := t.render(ctx, t.prompt(messages))
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
	result, failure := t.answer(ctx, sent, check, onDelta)
	result.Usage = t.Usage()
	if failure != nil {
		failure.suspectMedia(sent)
	}
	return result, failure
}

// answer sends the request and reads the answer.
func (t *Target) answer(ctx context.Context, sent conversation, check formatCheck, onDelta func(Delta)) (Result, *Error) {
	ctx, timer := t.startTokenTimer(ctx)
	defer timer.stop()
	parameters, err := t.parameters()
	if err != nil {
		return Result{}, t.failBeforeAnswer(ctx, err)
	}
	m := &meter{counter: t.counter, encoding: encodingOf(t.Model), sent: sent.json}
	t.meter.Store(m)
	state := &stateReader{rule: t.quirks.state}
	sending := context.WithValue(withBody(ctx, parameters, sent.json), stateKey{}, state)
	stream, err := t.client.CreateChatCompletionStream(sending, t.request())
	if err != nil {
		if ctx.Err() == nil {
			m.refuse()
		}
		return Result{}, t.failBeforeAnswer(ctx, err)
	}
	defer stream.Close()

	var result Result
	var tags thinkTags
	called := "" // name of a tool
	take := func(delta Delta) {
		m.write(delta)
		if onDelta != nil {
			onDelta(delta)
		}
	}
	for {
		var chunk openai.ChatCompletionStreamResponse
		chunk, err = stream.Recv()
		if err != nil {
			break
		}
		m.report(chunk.Usage)
		if len(chunk.Choices) > 0 {
			timer.restart()
		}
		for _, choice := range chunk.Choices {
			called = firstOf(called, toolOf(choice.Delta))
			if choice.Delta.ReasoningContent != "" {
				take(Delta{choice.Delta.ReasoningContent, true})
			}
			// A refusal is the answer, whatever the response format.
			if choice.Delta.Refusal != "" {
				check = nil
			}
			switch delta := choice.Delta.Content + choice.Delta.Refusal; {
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
	}
	tags.flush(take)
	result.Text, result.Reasoning = m.texts()
	if result.Text+result.Reasoning == "" && errors.As(err, new(*errorResponse)) {
		m.refuse()
	}
	failure := t.finish(ctx, &result, called, err)
	if failure == nil {
		result.State = t.state(state, result.Reasoning, called != "")
		failure = t.check(&result, check)
	}
	return result, failure
}

var word = regexp.MustCompile(`^[A-Za-z0-9_. -]{1,64}$`)

// finishReason returns a finish reason if it is a word, since it is recorded.
func finishReason(given string) string {
	if !word.MatchString(given) {
		return "other"
	}
	return given
}

// toolOf returns the name of the tool that a delta calls; "" without one.
func toolOf(delta openai.ChatCompletionStreamChoiceDelta) string {
	for _, call := range delta.ToolCalls {
		if call.Function.Name != "" {
			return call.Function.Name
		}
	}
	if delta.FunctionCall != nil {
		return delta.FunctionCall.Name
	}
	return ""
}

// finish returns the error of a stream that ended with err, nil for a complete answer. called is
// a tool that the model called. It clears the finish reason of an incomplete answer.
func (t *Target) finish(ctx context.Context, result *Result, called string, err error) *Error {
	switch {
	case result.FinishReason == finishError:
		result.FinishReason = ""
		return &Error{ProviderID: t.ProviderID, Kind: KindServer, Message: "the provider failed in the middle of its answer"}
	case result.FinishReason == string(openai.FinishReasonContentFilter) && result.Text == "":
		result.FinishReason = ""
		return &Error{ProviderID: t.ProviderID, Kind: KindContentFilter, Message: "the provider's content filter stopped the answer"}
	case result.FinishReason != "" && result.Text == "" && called != "":
		result.FinishReason = ""
		return &Error{ProviderID: t.ProviderID, Kind: KindToolCall, Message: t.clean(fmt.Sprintf(
			"the answer has no text and calls the tool %q, although no tools were offered", called), maxMessage)}
	case result.FinishReason != "":
		return nil
	case errors.Is(err, io.EOF) && ctx.Err() == nil:
		return &Error{ProviderID: t.ProviderID, Kind: KindTruncated, Message: "the answer ended without a finish reason"}
	default:
		return t.fail(ctx, err)
	}
}

// failBeforeAnswer is fail for a request that may not have been sent: go-openai rejects some
// itself.
func (t *Target) failBeforeAnswer(ctx context.Context, err error) *Error {
	e := t.fail(ctx, err)
	if e.Kind == KindTruncated {
		e.Kind, e.Message = KindConfiguration, t.clean(err.Error(), maxMessage)
	}
	return e
}

// request returns a request without its messages and settings, see [withBody].
func (t *Target) request() openai.ChatCompletionRequest {
	request := openai.ChatCompletionRequest{Model: t.Model}
	if !t.quirks.noStreamOptions {
		request.StreamOptions = &openai.StreamOptions{IncludeUsage: true}
	}
	return request
}
