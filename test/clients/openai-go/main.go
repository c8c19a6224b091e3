// The command uses the Responses API and chat completions of a gateway as programs use those of OpenAI.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/conversations"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
)

func main() {
	defer func() {
		if failure := recover(); failure != nil {
			fmt.Fprintln(os.Stderr, failure)
			os.Exit(1)
		}
	}()
	client := openai.NewClient(option.WithBaseURL(os.Getenv("URL")+"/v1"), option.WithAPIKey(cmpOr(os.Getenv("KEY"), "none")), option.WithMaxRetries(0))
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	useResponses(ctx, client)
	useConversations(ctx, client)
	useChat(ctx, client)
	fmt.Println("ok")
}

func cmpOr(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func require(ok bool, format string, args ...any) {
	if !ok {
		panic(fmt.Sprintf(format, args...))
	}
}

const model = "default"

func text(input string) responses.ResponseNewParamsInputUnion {
	return responses.ResponseNewParamsInputUnion{OfString: param.NewOpt(input)}
}

func useResponses(ctx context.Context, client openai.Client) {
	first := must(client.Responses.New(ctx, responses.ResponseNewParams{Model: model, Input: text("Hello")}))
	require(first.Status == "completed" && strings.Contains(first.OutputText(), `1st message: "Hello"`), "%s", first.RawJSON())
	second := must(client.Responses.New(ctx, responses.ResponseNewParams{
		Model: model, Input: text("count to 100"), PreviousResponseID: param.NewOpt(first.ID), Background: param.NewOpt(true),
	}))
	require(second.Status == "queued" || second.Status == "in_progress", "%s", second.RawJSON())

	// The stream is read in two parts.
	said, after := "", int64(0)
	read := func(from param.Opt[int64], until func() bool) (last responses.ResponseStreamEventUnion) {
		stream := client.Responses.GetStreaming(ctx, second.ID, responses.ResponseGetParams{StartingAfter: from})
		defer stream.Close()
		for stream.Next() {
			last = stream.Current()
			require(last.SequenceNumber >= after, "%d comes after %d", last.SequenceNumber, after)
			after = last.SequenceNumber
			if last.Type == "response.output_text.delta" {
				said += last.Delta
			}
			if until() {
				return last
			}
		}
		require(stream.Err() == nil, "%v", stream.Err())
		return last
	}
	read(param.Opt[int64]{}, func() bool { return len(said) > 150 })
	last := read(param.NewOpt(after), func() bool { return false })
	require(last.Type == "response.completed" && last.Response.OutputText() == said, "%s", last.RawJSON())

	_, err := client.Responses.New(ctx, responses.ResponseNewParams{Model: model, Input: text("x"), TopLogprobs: param.NewOpt(int64(3))})
	var failure *openai.Error
	require(errors.As(err, &failure) && failure.StatusCode == http.StatusBadRequest && failure.Param == "top_logprobs" && failure.Code == "unsupported_parameter", "%v", err)
}

func useConversations(ctx context.Context, client openai.Client) {
	created := must(client.Conversations.New(ctx, conversations.ConversationNewParams{Metadata: map[string]string{"team": "one"}}))
	must(client.Conversations.Update(ctx, created.ID, conversations.ConversationUpdateParams{Metadata: map[string]string{"team": "two"}}))
	got := must(client.Conversations.Get(ctx, created.ID))
	require(got.ID == created.ID && strings.Contains(got.RawJSON(), `"team":"two"`), "%s", got.RawJSON())
	r := must(client.Responses.New(ctx, responses.ResponseNewParams{
		Model: model, Input: text("Hello"),
		Conversation: responses.ResponseNewParamsConversationUnion{OfString: param.NewOpt(created.ID)},
	}))
	require(r.Conversation.ID == created.ID, "%s", r.RawJSON())
	items := client.Conversations.Items.ListAutoPaging(ctx, created.ID, conversations.ItemListParams{Order: "asc", Limit: param.NewOpt(int64(1))})
	var types []string
	for items.Next() {
		types = append(types, items.Current().Type+" "+string(items.Current().Role))
	}
	require(items.Err() == nil && fmt.Sprint(types) == "[message user message assistant]", "%v %v", types, items.Err())
	deleted := must(client.Conversations.Delete(ctx, created.ID))
	require(deleted.Deleted, "%s", deleted.RawJSON())
}

func useChat(ctx context.Context, client openai.Client) {
	stream := client.Chat.Completions.NewStreaming(ctx, openai.ChatCompletionNewParams{
		Model: model, Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("count to 40")},
		StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: param.NewOpt(true)},
	})
	var all openai.ChatCompletionAccumulator
	for stream.Next() {
		require(all.AddChunk(stream.Current()), "an invalid chunk: %s", stream.Current().RawJSON())
	}
	require(stream.Err() == nil, "%v", stream.Err())
	require(strings.Contains(all.Choices[0].Message.Content, "Counting to 40: 1 2 3") && all.Usage.TotalTokens > 0, "%+v", all)
}
