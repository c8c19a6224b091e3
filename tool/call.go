package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/event"
)

const maxErrorBytes = 4 << 10 // of the error text for models

// Call calls a tool. Errors are results for the model, too. The worker bounds the time and handles
// panics.
func (s *Set) Call(ctx context.Context, r activities.ToolCallRequest) activities.ToolCallResult {
	ctx = withCall(ctx, call{r.ContextName, r.ToolCallID, r.Progress, r.Blobs})
	result, err := s.call(ctx, r)
	if err != nil {
		return failure(err)
	}
	return activities.ToolCallResult{Value: result}
}

func (s *Set) call(ctx context.Context, r activities.ToolCallRequest) (json.RawMessage, error) {
	t, found, err := s.find(ctx, r)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, fmt.Errorf("this worker has no tool %s", r.Name)
	}
	arguments := r.Arguments
	if len(arguments) == 0 || string(arguments) == "null" {
		arguments = json.RawMessage("{}")
	}
	if err := t.schema.check(arguments); err != nil {
		return nil, err
	}
	value, err := t.call(ctx, arguments)
	if err != nil {
		return nil, err
	}
	return s.bounded(ctx, t, value)
}

func (s *Set) find(ctx context.Context, r activities.ToolCallRequest) (t Tool, found bool, err error) {
	if t, found = s.byName[r.Name]; found {
		return t, true, nil
	}
	for _, source := range s.options.Sources {
		if t, found, err = source.Find(ctx, r.ContextName, r.Name); found || err != nil {
			return t, found, err
		}
	}
	return Tool{}, false, nil
}

func failure(err error) activities.ToolCallResult {
	text, encodeErr := marshal(event.RedactOutput(strings.ToValidUTF8(err.Error(), "\uFFFD"), maxErrorBytes))
	if encodeErr != nil {
		text = json.RawMessage(`"the tool failed"`)
	}
	return activities.ToolCallResult{Error: text, IsError: true, Retryable: isRetryable(err)}
}
