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
			if _, err := ask(context.Background(), client, o.Ask, seen.token); err != nil {
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

func ask(ctx context.Context, client *openai.Client, message string, onToken func(string)) (string, error) {
	stream, err := client.CreateChatCompletionStream(ctx, openai.ChatCompletionRequest{
		Model:    "scripted",
		Messages: []openai.ChatCompletionMessage{{Role: openai.ChatMessageRoleUser, Content: message}},
	})
	if err != nil {
		return "", err
	}
	defer stream.Close()
	text := ""
	for {
		chunk, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return text, nil
		}
		if err != nil {
			return text, err
		}
		for _, choice := range chunk.Choices {
			if delta := choice.Delta.Content; delta != "" {
				text += delta
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
