package llm

import (
	"context"
	"errors"
	"io"
	"math"
	"strings"

	"github.com/sashabaranov/go-openai"

	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// Result is an answer, or what there was of it when it failed.
type Result struct {
	Text string
	// FinishReason is the provider's word: "stop", "length", "content_filter",
	// … Empty when the answer is not complete.
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
//   - An answer is complete with its finish reason; what happens to the
//     connection after it is of no importance.
//   - An answer that a content filter stopped before its first word is of
//     [KindContentFilter]; one that it stopped later is an answer whose finish
//     reason says so.
func (t *Target) Stream(ctx context.Context, messages []reducer.Message, onDelta func(text string)) (Result, error) {
	request, err := t.request(messages)
	if err != nil {
		return Result{}, err
	}
	stream, err := t.client.CreateChatCompletionStream(ctx, request)
	if err != nil {
		return Result{}, t.failBeforeAnswer(ctx, err)
	}
	defer stream.Close()

	var text strings.Builder
	var result Result
	for {
		var chunk openai.ChatCompletionStreamResponse
		chunk, err = stream.Recv()
		if err != nil {
			break
		}
		if chunk.Usage != nil {
			result.InputTokens, result.OutputTokens = chunk.Usage.PromptTokens, chunk.Usage.CompletionTokens
		}
		for _, choice := range chunk.Choices {
			// A refusal is the answer of a model that will not give another.
			if delta := choice.Delta.Content + choice.Delta.Refusal; delta != "" {
				text.WriteString(delta)
				if onDelta != nil {
					onDelta(delta)
				}
			}
			if choice.FinishReason != "" && choice.FinishReason != openai.FinishReasonNull {
				result.FinishReason = string(choice.FinishReason)
			}
		}
	}
	result.Text = text.String()
	return result, t.endOf(ctx, &result, err)
}

// endOf judges the end of a stream: err is what ended it. It takes the finish
// reason of an incomplete answer back.
func (t *Target) endOf(ctx context.Context, result *Result, err error) error {
	switch {
	case result.FinishReason == finishError:
		result.FinishReason = ""
		return &Error{ProviderID: t.ProviderID, Kind: KindServer, Message: "the provider gave up in the middle of its answer"}
	case result.FinishReason == string(openai.FinishReasonContentFilter) && result.Text == "":
		result.FinishReason = ""
		return &Error{ProviderID: t.ProviderID, Kind: KindContentFilter, Message: "the provider's content filter stopped the answer"}
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
func (t *Target) failBeforeAnswer(ctx context.Context, err error) error {
	e := t.fail(ctx, err)
	if e.Kind == KindTruncated {
		e.Kind, e.Message = KindConfiguration, t.clean(err.Error(), maxMessage)
	}
	return e
}

func (t *Target) request(messages []reducer.Message) (openai.ChatCompletionRequest, error) {
	request := openai.ChatCompletionRequest{Model: t.Model, Messages: t.render(messages)}
	if len(request.Messages) == 0 {
		return request, &Error{ProviderID: t.ProviderID, Kind: KindBadRequest, Message: "nothing was sent: the conversation has no message"}
	}
	if !t.quirks.noStreamOptions {
		request.StreamOptions = &openai.StreamOptions{IncludeUsage: true}
	}
	if t.temperature != nil {
		// go-openai leaves a 0 out; its smallest number becomes a 0 again in
		// writeZeroTemperature.
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
	return request, nil
}
