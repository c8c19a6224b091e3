package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	historypb "go.temporal.io/api/history/v1"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/test/rig"
)

const (
	toolCalls = 100
	compared  = 10 // calls at the beginning and at the end
)

func fileName(i int) string { return fmt.Sprintf("file-%03d.txt", i) }

// toolFiles creates a directory with n files of 1 KB. The caller removes it.
func toolFiles(n int) (dir string, err error) {
	if dir, err = os.MkdirTemp("", "chronicle-bench-"); err != nil {
		return "", err
	}
	for i := range n {
		if err := os.WriteFile(filepath.Join(dir, fileName(i)), []byte(strings.Repeat("a result ", 111)), 0o600); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// readFiles are n answers that each call read_file.
func readFiles(n int) (steps [][]rig.Call) {
	for i := range n {
		steps = append(steps, []rig.Call{{ID: fmt.Sprintf("call_%03d", i), Name: "read_file", Arguments: fmt.Sprintf(`{"path":%q}`, fileName(i))}})
	}
	return steps
}

// enableFiles lets a context call read_file.
func (t *talker) enableFiles() error {
	c, err := t.Contexts.Open(t.name)
	if err != nil {
		return err
	}
	_, err = c.Send(t.ctx, event.New(event.SetTools{Tools: event.ToolList{{Pattern: "read_file"}}, MaxSteps: new(toolCalls)}))
	return err
}

// tools has a turn of 100 tool calls in a context of 200,000 tokens (800 KB). A call includes the model request after
// it.
func tools(r *runner) error {
	dir, err := toolFiles(toolCalls)
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := r.replaceWorker("--tool-files-root", dir); err != nil {
		return err
	}
	t := r.context("tools")
	if _, err := t.turn(message("begin-tools")); err != nil {
		return err
	}
	if err := t.enableFiles(); err != nil {
		return err
	}
	if err := r.fill(t.name, strings.Repeat("the and for you ", 50_000)); err != nil {
		return err
	}
	m := rig.Message{Key: "tools", Tokens: tokens, Script: rig.Script{Steps: readFiles(toolCalls)}}
	if _, err := t.turn(m); err != nil {
		return err
	}
	history, err := r.history(t.name)
	if err != nil {
		return err
	}
	calls := callsOf(history)
	if len(calls) != toolCalls {
		return fmt.Errorf("%d calls in the history, want %d", len(calls), toolCalls)
	}
	requests := make([]rig.Observation, toolCalls+1)
	for i := range requests {
		if requests[i], err = r.await(rig.Requested, rig.RepeatKey(m.Key, i+1)); err != nil {
			return err
		}
	}
	for part, first := range map[string]int{"first": 0, "last": toolCalls - compared} {
		var entries, bytes, took samples
		for i := first; i < first+compared; i++ {
			entries = append(entries, float64(len(calls[i])))
			bytes = append(bytes, float64(sizeOf(calls[i])))
			took.add(requests[i+1].At.Sub(requests[i].At))
		}
		name := fmt.Sprintf("_%s_%d_calls", part, compared)
		r.report.add("tool_history_events"+name, "events", entries)
		r.report.add("tool_history_bytes"+name, "bytes", bytes)
		r.report.add("tool_step"+name+"_ms", "ms", took)
	}
	return r.replaceWorker()
}

// callsOf splits a history at the activities of tool calls.
func callsOf(history []*historypb.HistoryEvent) (calls [][]*historypb.HistoryEvent) {
	for _, h := range history {
		if h.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName() == "CallTool" {
			calls = append(calls, nil)
		}
		if n := len(calls); n > 0 {
			calls[n-1] = append(calls[n-1], h)
		}
	}
	return calls
}
