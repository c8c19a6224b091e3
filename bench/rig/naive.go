package rig

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/sashabaranov/go-openai"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

const (
	naiveName     = "Naive"
	naiveGenerate = "Generate"
	naiveTool     = "Tool"
)

// naiveTurn answers a conversation. Its activity Generate takes all messages as its input.
func naiveTurn(ctx workflow.Context, messages []openai.ChatCompletionMessage) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
	for {
		var answer openai.ChatCompletionMessage
		if err := workflow.ExecuteActivity(ctx, naiveGenerate, messages).Get(ctx, &answer); err != nil {
			return err
		}
		if len(answer.ToolCalls) == 0 {
			return nil
		}
		messages = append(messages, answer)
		for _, call := range answer.ToolCalls {
			var result string
			if err := workflow.ExecuteActivity(ctx, naiveTool, call.Function.Arguments).Get(ctx, &result); err != nil {
				return err
			}
			messages = append(messages, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleTool, ToolCallID: call.ID, Content: result})
		}
	}
}

func registerNaive(w worker.Worker, model *openai.Client) {
	w.RegisterWorkflowWithOptions(naiveTurn, workflow.RegisterOptions{Name: naiveName})
	w.RegisterActivityWithOptions(func(ctx context.Context, messages []openai.ChatCompletionMessage) (openai.ChatCompletionMessage, error) {
		tool := openai.Tool{Type: openai.ToolTypeFunction, Function: &openai.FunctionDefinition{Name: "read_file"}}
		return ask(ctx, model, openai.ChatCompletionRequest{Model: "scripted", Messages: messages, Tools: []openai.Tool{tool}}, nil)
	}, activity.RegisterOptions{Name: naiveGenerate})
	w.RegisterActivityWithOptions(func(string) (string, error) { return ToolResult, nil }, activity.RegisterOptions{Name: naiveTool})
}

// ToolResult is the result of each tool call of [Bare.Answer].
var ToolResult = strings.Repeat("a result ", 111)

// Answer starts a workflow that answers the messages, with the tool calls of the last one, and
// passes all messages to each activity that calls the model. It returns when the workflow has ended.
func (b *Bare) Answer(ctx context.Context, workflowID string, messages ...string) error {
	var conversation []openai.ChatCompletionMessage
	for _, text := range messages {
		conversation = append(conversation, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleUser, Content: text})
	}
	run, err := b.temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: workflowID, TaskQueue: bareName}, naiveName, conversation)
	if err != nil {
		return fmt.Errorf("start %s: %w", workflowID, err)
	}
	return run.Get(ctx, nil)
}
