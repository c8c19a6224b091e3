package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/proto"

	"github.com/seed-9ed7edd4/chronicle/bench/rig"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

const (
	toolCalls = 100
	// toolTokens is the length of the conversation before the calls. A word is a token.
	toolTokens = 200_000
	compared   = 10 // calls at the beginning and at the end
)

// tools has a turn of 100 tool calls in a long context.
func tools(r *runner) error {
	steps, err := r.turnOfCalls("tools")
	if err != nil {
		return err
	}
	n := len(steps)
	events := func(s step) float64 { return float64(s.events) }
	r.report.add("tool_history_events_first_10_calls", "events", eachOf(steps[:compared], events))
	r.report.add("tool_history_events_last_10_calls", "events", eachOf(steps[n-compared:], events))
	r.addSteps("tool", steps)
	r.report.add("tool_request_bytes_last_10_calls", "bytes", eachOf(steps[n-compared:], func(s step) float64 { return float64(s.request) }))
	return nil
}

// toolsUntuned has the same turn, and then a workflow that passes all messages to its activities,
// until it completes or the server ends it.
func toolsUntuned(r *runner) error {
	steps, err := r.turnOfCalls("untuned-tools")
	if err != nil {
		return err
	}
	r.addSteps("untuned_tool", steps)
	const name = "naive-tools"
	ctx, cancel := context.WithTimeout(r.ctx, turnTimeout)
	defer cancel()
	m := turnMessage(name)
	m.Script.Steps = callsOf(name)
	ended := r.rig.Bare.Answer(ctx, name, prose(toolTokens), m.String())
	if ended != nil && !errors.As(ended, new(*temporal.TerminatedError)) {
		return ended
	}
	if steps, err = r.steps(ctx, name, "Tool", m.Key); err != nil {
		return errors.Join(err, ended)
	}
	if len(steps) < 2*compared {
		return fmt.Errorf("%s ended after %d calls: %w", name, len(steps), ended)
	}
	r.addSteps("naive_untuned_tool", steps)
	r.report.add("naive_untuned_tool_calls_until_the_server_ends_it", "calls", samples{float64(len(steps))})
	return nil
}

// addSteps reports the history and the time of the first and the last calls.
func (r *runner) addSteps(name string, steps []step) {
	for _, part := range []struct {
		name  string
		steps []step
	}{{"first", steps[:compared]}, {"last", steps[len(steps)-compared:]}} {
		bytes := eachOf(part.steps, func(s step) float64 { return float64(s.bytes) })
		took := eachOf(part.steps, func(s step) float64 { return float64(s.took) / float64(time.Millisecond) })
		r.report.add(fmt.Sprintf("%s_history_bytes_%s_10_calls", name, part.name), "bytes", bytes)
		r.report.add(fmt.Sprintf("%s_step_%s_10_calls_ms", name, part.name), "ms", took)
	}
}

func eachOf(steps []step, value func(step) float64) (s samples) {
	for _, one := range steps {
		s = append(s, value(one))
	}
	return s
}

func turnMessage(name string) rig.Message { return rig.Message{Key: name, Tokens: tokens, Every: 0} }

// turnOfCalls has a context of about 800 KB answer a message after 100 calls of read_file.
func (r *runner) turnOfCalls(name string) ([]step, error) {
	dir, err := os.MkdirTemp("", "chronicle-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	for i := range toolCalls {
		if err := os.WriteFile(filepath.Join(dir, fileName(i)), []byte(rig.ToolResult), 0o600); err != nil {
			return nil, err
		}
	}
	if err := r.replaceWorker("--tool-files-root", dir); err != nil {
		return nil, err
	}
	talker := r.context(name)
	if _, err := talker.turn(message("begin-" + name)); err != nil {
		return nil, err
	}
	c, err := r.rig.Contexts.Open(name)
	if err != nil {
		return nil, err
	}
	maxSteps := toolCalls
	_, err = c.Send(r.ctx, event.New(event.SetTools{Tools: event.ToolList{{Pattern: "read_file"}}, MaxSteps: &maxSteps}),
		event.New(event.UserMessage{Content: prose(toolTokens), TriggersTurn: new(false)}))
	if err != nil {
		return nil, err
	}
	m := turnMessage(name)
	m.Script.Steps = callsOf(name)
	if _, err := talker.turn(m); err != nil {
		return nil, err
	}
	steps, err := r.steps(r.ctx, wire.WorkflowID(name), "CallTool", m.Key)
	if err == nil && len(steps) != toolCalls {
		err = fmt.Errorf("%d calls, want %d", len(steps), toolCalls)
	}
	if err != nil {
		return nil, err
	}
	return steps, r.replaceWorker()
}

func fileName(i int) string { return fmt.Sprintf("file-%03d.txt", i) }

func callsOf(name string) (steps [][]rig.Call) {
	for i := range toolCalls {
		steps = append(steps, []rig.Call{{ID: fmt.Sprintf("call_%s_%03d", name, i), Name: "read_file", Arguments: fmt.Sprintf(`{"path":%q}`, fileName(i))}})
	}
	return steps
}

// step is a tool call and the model request after it.
type step struct {
	events, bytes int // of the history
	request       int // size of the model request in bytes
	took          time.Duration
}

// steps returns the steps of the last turn of a workflow. In the history, a step begins when the
// activity of the call is scheduled, and ends before the next step or at the end of the history.
func (r *runner) steps(ctx context.Context, workflowID, activity, key string) (steps []step, err error) {
	history, err := wholeHistory(ctx, r.rig.Temporal, workflowID)
	if err != nil {
		return nil, fmt.Errorf("read the history of %s: %w", workflowID, err)
	}
	for _, h := range history {
		if h.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED {
			break
		}
		if h.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName() == activity {
			steps = append(steps, step{})
		}
		if n := len(steps); n > 0 {
			steps[n-1].events++
			steps[n-1].bytes += proto.Size(h)
		}
	}
	for i := range steps {
		from, isFrom := r.rig.Observations.Find(rig.Requested, rig.RepeatKey(key, i+1))
		to, isTo := r.rig.Observations.Find(rig.Requested, rig.RepeatKey(key, i+2))
		if !isFrom || !isTo {
			return steps[:i], nil // the server ended the workflow
		}
		steps[i].request, steps[i].took = to.Size, to.At.Sub(from.At)
	}
	return steps, nil
}

// prose returns words of about one token each. It is deterministic.
func prose(words int) string {
	common := strings.Fields("the and for you are not but all can had her was one our out day get has him his how man new now old see two way who boy")
	random := rand.New(rand.NewPCG(1, 0))
	var b strings.Builder
	for range words {
		b.WriteString(common[random.IntN(len(common))])
		b.WriteByte(' ')
	}
	return b.String()
}
