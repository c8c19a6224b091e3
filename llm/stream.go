package llm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strings"

	"github.com/sashabaranov/go-openai"

	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// Result is an answer, or what there was of it when it failed.
type Result struct {
	Text string
	// FinishReason is the provider's word: "stop", "length", "content_filter",
	// …, or "other" if it is not one. Empty when the answer is not complete.
	FinishReason string
	// InputTokens and OutputTokens are 0 when the provider did not say.
	InputTokens  int
	OutputTokens int
}

// finishError is the finish reason by which some servers say that they failed.
const finishError = "error"

// Stream sends the conversation and calls onDelta, which may be nil, for each
// piece of the answer's text, in order and from the same goroutine. A piece is
// never empty. The context bounds the request.
//
// An error is always an [*Error]. The result then holds the text so far.
//
//   - When the caller cancels ctx, it is [context.Canceled] and also the cause
//     of the cancellation; when the deadline of ctx passes, it is of
//     [KindTimeout].
//   - When nothing comes for longer than the target's FirstToken or Stall, it
//     is of [KindTimeout] too, and says which of them it was.
//   - An answer is complete with its finish reason; what happens to the
//     connection after it is of no importance.
//   - An answer that a content filter stopped before its first word is of
//     [KindContentFilter]; one that it stopped later is an answer whose finish
//     reason says so.
//   - No tools are offered. A model that calls one all the same is not listened
//     to: the text around the calls is the answer, whatever the finish reason.
//     Without any text it is of [KindToolCall].
func (t *Target) Stream(ctx context.Context, messages []reducer.Message, onDelta func(text string)) (Result, error) {
	sent, err := t.render(ctx, messages)
	if err != nil {
		return Result{}, t.failBeforeAnswer(ctx, err)
	}
	if len(sent.json) == 0 {
		return Result{}, &Error{ProviderID: t.ProviderID, Kind: KindBadRequest, Message: "nothing was sent: the conversation has no message"}
	}
	result, failure := t.answer(ctx, sent, onDelta)
	if failure != nil {
		failure.suspectImages(sent)
		return result, failure
	}
	return result, nil
}

// answer asks and reads the answer.
func (t *Target) answer(ctx context.Context, sent conversation, onDelta func(text string)) (Result, *Error) {
	ctx, listener := t.listen(ctx)
	defer listener.stop()
	stream, err := t.client.CreateChatCompletionStream(withMessages(ctx, sent.json), t.request())
	if err != nil {
		return Result{}, t.failBeforeAnswer(ctx, err)
	}
	defer stream.Close()

	var text strings.Builder
	var result Result
	called := "" // a tool
	for {
		var chunk openai.ChatCompletionStreamResponse
		chunk, err = stream.Recv()
		if err != nil {
			break
		}
		if chunk.Usage != nil {
			result.InputTokens, result.OutputTokens = chunk.Usage.PromptTokens, chunk.Usage.CompletionTokens
		}
		if len(chunk.Choices) > 0 {
			listener.heard()
		}
		for _, choice := range chunk.Choices {
			called = firstOf(called, toolOf(choice.Delta))
			// A refusal is the answer of a model that will not give another.
			if delta := choice.Delta.Content + choice.Delta.Refusal; delta != "" {
				text.WriteString(delta)
				if onDelta != nil {
					onDelta(delta)
				}
			}
			if choice.FinishReason != "" && choice.FinishReason != openai.FinishReasonNull {
				result.FinishReason = finishReason(string(choice.FinishReason))
			}
		}
	}
	result.Text = text.String()
	failure := t.endOf(ctx, &result, called, err)
	return result, failure
}

var word = regexp.MustCompile(`^[A-Za-z0-9_. -]{1,64}$`)

// finishReason is a finish reason if it is a word, since it is recorded.
func finishReason(given string) string {
	if !word.MatchString(given) {
		return "other"
	}
	return given
}

// toolOf is the tool that a piece of an answer calls; "" when it calls none, or
// goes on with a call.
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

// endOf judges the end of a stream: called is a tool that it called, err is
// what ended it. It takes the finish reason of an incomplete answer back.
func (t *Target) endOf(ctx context.Context, result *Result, called string, err error) *Error {
	switch {
	case result.FinishReason == finishError:
		result.FinishReason = ""
		return &Error{ProviderID: t.ProviderID, Kind: KindServer, Message: "the provider gave up in the middle of its answer"}
	case result.FinishReason == string(openai.FinishReasonContentFilter) && result.Text == "":
		result.FinishReason = ""
		return &Error{ProviderID: t.ProviderID, Kind: KindContentFilter, Message: "the provider's content filter stopped the answer"}
	case result.FinishReason != "" && result.Text == "" && called != "":
		result.FinishReason = ""
		return &Error{ProviderID: t.ProviderID, Kind: KindToolCall, Message: t.clean(fmt.Sprintf(
			"the model said nothing but called the tool %q, and it was offered none", called), maxMessage)}
	case result.FinishReason != "":
		return nil
	case errors.Is(err, io.EOF) && ctx.Err() == nil:
		return &Error{ProviderID: t.ProviderID, Kind: KindTruncated, Message: "the answer ended without a finish reason"}
	default:
		return t.fail(ctx, err)
	}
}

// failBeforeAnswer is fail for a request that was perhaps not even sent:
// go-openai refuses some on its own, like a temperature for a model that has
// none.
func (t *Target) failBeforeAnswer(ctx context.Context, err error) *Error {
	e := t.fail(ctx, err)
	if e.Kind == KindTruncated {
		e.Kind, e.Message = KindConfiguration, t.clean(err.Error(), maxMessage)
	}
	return e
}

// request is a request without its messages, see [withMessages].
func (t *Target) request() openai.ChatCompletionRequest {
	request := openai.ChatCompletionRequest{Model: t.Model}
	if !t.quirks.noStreamOptions {
		request.StreamOptions = &openai.StreamOptions{IncludeUsage: true}
	}
	if t.temperature != nil {
		// go-openai leaves a 0 out; its smallest number becomes a 0 again in
		// writeBody.
		request.Temperature = max(float32(*t.temperature), math.SmallestNonzeroFloat32)
	}
	if t.maxTokens != nil {
		if t.quirks.maxCompletionTokens {
			request.MaxCompletionTokens = *t.maxTokens
		} else {
			//lint:ignore SA1019 most compatible servers know only the older name
			request.MaxTokens = *t.maxTokens
		}
	}
	return request
}
