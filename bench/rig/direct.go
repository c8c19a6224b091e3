package rig

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/sashabaranov/go-openai"
)

func callModel(s *self) error {
	client := modelClient(s.Model)
	s.report(Observation{Kind: Ready, At: time.Now()})
	for {
		o, ok := s.next()
		if !ok {
			return nil
		}
		go func() {
			var seen tokenTimes
			if _, err := ask(context.Background(), client, requestOf(o.Ask), seen.token); err != nil {
				s.report(Observation{Kind: Broken, Key: KeyOf(o.Ask), At: time.Now(), Value: err.Error()})
				return
			}
			s.report(seen.ended(KeyOf(o.Ask), "completed"))
		}()
	}
}

func modelClient(url string) *openai.Client {
	config := openai.DefaultConfig("")
	config.BaseURL = url
	return openai.NewClientWithConfig(config)
}

func requestOf(text string) openai.ChatCompletionRequest {
	return openai.ChatCompletionRequest{Model: "scripted", Messages: []openai.ChatCompletionMessage{{Role: openai.ChatMessageRoleUser, Content: text}}}
}

func ask(ctx context.Context, client *openai.Client, request openai.ChatCompletionRequest, onToken func(string)) (openai.ChatCompletionMessage, error) {
	answer := openai.ChatCompletionMessage{Role: openai.ChatMessageRoleAssistant}
	stream, err := client.CreateChatCompletionStream(ctx, request)
	if err != nil {
		return answer, err
	}
	defer stream.Close()
	for {
		chunk, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return answer, nil
		}
		if err != nil {
			return answer, err
		}
		for _, choice := range chunk.Choices {
			answer.ToolCalls = append(answer.ToolCalls, choice.Delta.ToolCalls...) // each is one chunk
			if delta := choice.Delta.Content; delta != "" {
				answer.Content += delta
				if onToken != nil {
					onToken(delta)
				}
			}
		}
	}
}

type tokenTimes struct {
	first  time.Time
	delays []time.Duration
}

func (s *tokenTimes) token(text string) {
	now := time.Now()
	if s.first.IsZero() {
		s.first = now
	}
	if at, ok := writtenAt(text); ok {
		s.delays = append(s.delays, now.Sub(at))
	}
}

func (s *tokenTimes) ended(key, how string) Observation {
	return Observation{Kind: Ended, Key: key, At: time.Now(), Value: how, First: s.first, Delays: s.delays}
}
