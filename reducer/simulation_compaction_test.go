package reducer_test

import (
	"slices"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// overflow generates what a worker reports about a request that is too long, with any numbers.
func overflow() *rapid.Generator[reducer.Overflow] {
	return rapid.Custom(func(t *rapid.T) reducer.Overflow {
		return reducer.Overflow{
			Tokens: rapid.OneOf(rapid.IntRange(100, 300), rapid.Int()).Draw(t, "tokens"),
			Window: rapid.OneOf(rapid.IntRange(100, 200), rapid.Int()).Draw(t, "window"),
			Source: rapid.SampledFrom([]event.WindowSource{"", event.WindowConfigured, event.WindowLearned, "guessed"}).Draw(t, "source"),
		}
	})
}

// tooLong drives a request that is too long to its summary, because random steps rarely do.
func (w *simulation) tooLong() {
	if w.running == nil {
		return
	}
	if w.running.MayCompact {
		way := rapid.SampledFrom([]string{"too long", "rejected as too long"}).Draw(w.T, "who")
		if way != "too long" {
			w.send()
		}
		w.endBy(way)
	}
	if w.running != nil && w.running.Compaction != nil && rapid.Bool().Draw(w.T, "summarises") {
		w.send()
		w.endBy("completed")
	}
}

// checkCompactions requires that compactions keep the newest user message, and that a summary replaces
// only messages that were in the log before its attempt.
func (w *simulation) checkCompactions() {
	has := func(id string) bool {
		return slices.ContainsFunc(w.session.Reduced.Messages, func(m reducer.Message) bool { return m.EventID == id })
	}
	compacted, started := -1, 0 // the newest compaction, and the attempt that wrote its summary
	writing := 0
	for i, e := range w.log {
		switch body := e.Body.(type) {
		case event.LLMRequestStarted:
			if writing = 0; body.Purpose != "" {
				writing = i
			}
		case event.Compacted:
			compacted, started = i, writing
			if body.Strategy == event.StrategySummarise {
				require.Positive(w, writing, "no attempt wrote the summary %s", e.ID)
			} else {
				started = 0
			}
		}
	}
	if compacted < 0 {
		return
	}
	isNewest := true
	for i, e := range slices.Backward(w.log) {
		if e.Tag() != event.TagUserMessage {
			continue
		}
		if isNewest || started > 0 && i > started {
			require.True(w, has(e.ID), "the compaction %s has removed %s", w.log[compacted].ID, e.ID)
		}
		isNewest = false
	}
}
