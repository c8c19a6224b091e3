package rig

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/sashabaranov/go-openai"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
)

// Completed is the Value of [Ended] for a turn with a whole answer.
const Completed = "completed"

// failed reports the failure of an observer, unless the rig has stopped.
func (r *Rig) failed(name string, err error) {
	if r.ctx.Err() == nil {
		r.Observations.fail(fmt.Errorf("observe %s: %w", name, err))
	}
}

type tokenTimes struct {
	first  time.Time
	delays []time.Duration
}

func (t *tokenTimes) token(text string) {
	now := time.Now()
	if t.first.IsZero() {
		t.first = now
	}
	if at, ok := WrittenAt(text); ok {
		t.delays = append(t.delays, now.Sub(at))
	}
}

func (t *tokenTimes) ended(key, how string) Observation {
	return Observation{Kind: Ended, Key: key, At: time.Now(), Value: how, First: t.first, Delays: t.delays}
}

// watch follows a context as a terminal does.
func (r *Rig) watch(c *client.Context) {
	newest := event.UserMessage{}
	keys := map[string]string{} // message keys by request
	seen := map[string]*tokenTimes{}
	tokensOf := func(requestID string) *tokenTimes {
		if seen[requestID] == nil {
			seen[requestID] = &tokenTimes{}
		}
		return seen[requestID]
	}
	ended := func(requestID, how string) {
		r.Observations.add(tokensOf(requestID).ended(keys[requestID], how))
		delete(seen, requestID)
		delete(keys, requestID)
	}
	for e, err := range c.Follow(r.ctx, client.FollowOptions{Deltas: true}) {
		if err != nil {
			r.failed(c.Name(), err)
			return
		}
		switch body := e.Body.(type) {
		case event.SystemPrompt:
			r.Observations.add(Observation{Kind: Watching, Key: c.Name(), At: time.Now()})
		case event.UserMessage:
			newest = body
		case event.LLMRequestStarted:
			keys[body.RequestID] = KeyOf(newest.Content)
		case event.TextDelta:
			tokensOf(body.RequestID).token(body.Delta)
		case event.AssistantMessage:
			keys[body.RequestID], _ = Answered(body.Content)
		case event.LLMRequestCompleted:
			ended(body.RequestID, Completed)
		case event.LLMRequestInterrupted:
			ended(body.RequestID, "interrupted")
		case event.LLMRequestFailed:
			ended(body.RequestID, "failed: "+body.Error)
		}
	}
}

// Ask has this process call the model in the background, without Temporal.
func (r *Rig) Ask(m Message) {
	go func() {
		var seen tokenTimes
		if err := ask(r.ctx, r.at.model, m.String(), seen.token); err != nil {
			r.failed(m.Key, err)
			return
		}
		r.Observations.add(seen.ended(m.Key, Completed))
	}()
}

func ask(ctx context.Context, url, text string, onToken func(string)) error {
	config := openai.DefaultConfig("")
	config.BaseURL = url
	stream, err := openai.NewClientWithConfig(config).CreateChatCompletionStream(ctx, openai.ChatCompletionRequest{
		Model: "scripted", Messages: []openai.ChatCompletionMessage{{Role: openai.ChatMessageRoleUser, Content: text}},
	})
	if err != nil {
		return err
	}
	defer stream.Close()
	for {
		chunk, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, choice := range chunk.Choices {
			if choice.Delta.Content != "" {
				onToken(choice.Delta.Content)
			}
		}
	}
}
