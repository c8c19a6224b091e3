package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	historypb "go.temporal.io/api/history/v1"
	"golang.org/x/sync/errgroup"

	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/test/rig"
)

// actions measures the actions that Temporal Cloud bills for turns, tool calls and contexts, which the server counts, and
// the history of turns.
func actions(r *runner) error {
	const calls = 10
	dir, err := toolFiles(calls)
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := r.replaceWorker("--tool-files-root", dir); err != nil {
		return err
	}
	talkers := make([]*talker, r.times(50))
	for i := range talkers {
		talkers[i] = r.context(fmt.Sprintf("actions-%d", i))
	}
	turnOf := func(m rig.Message) func(t *talker) error {
		return func(t *talker) error {
			m.Key = fmt.Sprintf("%s-%d-%d", t.name, m.Tokens, len(m.Script.Steps))
			_, err := t.turn(m)
			return err
		}
	}
	perContext := map[string]float64{}
	for _, step := range []struct {
		name   string
		do     func(t *talker) error
		isTurn bool
	}{
		{"opened_context", (*talker).begin, false},
		{"", (*talker).enableFiles, false},
		{"first_turn", turnOf(rig.Message{Tokens: 1}), true},
		{"short_turn", turnOf(message("")), true},
		{"10s_turn", turnOf(rig.Message{Tokens: 200, Every: 50 * time.Millisecond}), true},
		{"tool_turn", turnOf(rig.Message{Tokens: tokens, Script: rig.Script{Steps: readFiles(calls)}}), true},
		{"closed_context", (*talker).close, false},
		{"reopened_context", (*talker).reopen, false},
	} {
		m, err := r.measureActions(talkers, step.do)
		if err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		if step.name == "" {
			continue
		}
		var kinds []string
		for _, kind := range slices.Sorted(maps.Keys(m.counted)) {
			each := float64(m.counted[kind]) / float64(len(talkers))
			kinds = append(kinds, fmt.Sprintf("%s %s", number(each), kind))
			perContext[step.name] += each
		}
		r.report.add("actions_"+step.name, "actions", samples{perContext[step.name]}).Note = strings.Join(kinds, ", ")
		if step.isTurn {
			r.report.add("history_events_"+step.name, "events", m.entries)
			r.report.add("history_bytes_"+step.name, "bytes", m.bytes)
		}
	}
	r.report.add("actions_tool_call", "actions", samples{(perContext["tool_turn"] - perContext["short_turn"]) / calls})
	return r.replaceWorker()
}

// measurement is what a step cost all contexts.
type measurement struct {
	counted map[string]int // actions by type
	entries samples        // of the history, per context
	bytes   samples        // of the history without the messages and answers, per context
}

func (r *runner) measureActions(talkers []*talker, do func(t *talker) error) (m measurement, err error) {
	before, err := r.settledActions()
	if err != nil {
		return m, err
	}
	histories := make([][]*historypb.HistoryEvent, len(talkers))
	for i, t := range talkers {
		if t.begun {
			if histories[i], err = r.history(t.name); err != nil {
				return m, err
			}
		}
	}
	var doing errgroup.Group
	for _, t := range talkers {
		doing.Go(func() error { return do(t) })
	}
	if err := doing.Wait(); err != nil {
		return m, err
	}
	after, err := r.settledActions()
	if err != nil {
		return m, err
	}
	m.counted = map[string]int{}
	for kind, n := range after {
		if n -= before[kind]; n > 0 {
			m.counted[kind] = n
		}
	}
	for i, t := range talkers {
		history, err := r.history(t.name)
		if err != nil {
			return m, err
		}
		if len(history) < len(histories[i]) {
			continue // another session
		}
		added := history[len(histories[i]):]
		overhead, err := overheadOf(added)
		if err != nil {
			return m, err
		}
		m.entries = append(m.entries, float64(len(added)))
		m.bytes = append(m.bytes, float64(overhead))
	}
	return m, nil
}

// settledActions returns the actions when there have been no new ones for a second.
func (r *runner) settledActions() (map[string]int, error) {
	for last := map[string]int(nil); ; {
		now, err := r.Actions(r.ctx)
		if err != nil || last != nil && maps.Equal(now, last) {
			return now, err
		}
		last = now
		time.Sleep(time.Second)
	}
}

func (t *talker) close() error {
	c, err := t.Contexts.Open(t.name)
	if err != nil {
		return err
	}
	if err := c.Close(t.ctx, "measured"); err != nil {
		return err
	}
	return t.Temporal.GetWorkflow(t.ctx, wire.WorkflowID(t.name), "").Get(t.ctx, nil) // until it is archived
}

func (t *talker) reopen() error {
	c, err := t.Contexts.Open(t.name)
	if err != nil {
		return err
	}
	sent, err := c.Send(t.ctx, note("again"))
	if err == nil && len(sent.EventIDs) == 0 {
		err = fmt.Errorf("context %s did not reopen in time to record the note by an update", t.name)
	}
	return err
}
