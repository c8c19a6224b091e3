package stream_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/stream"
)

func delta(request, attempt, index int, text string) event.TextDelta {
	return event.TextDelta{
		RequestID: event.FormatRequestID("demo", request), Attempt: attempt, Index: index, Delta: text,
	}
}

func reset(d event.TextDelta) event.TextDelta {
	d.Reset = true
	return d
}

func TestFence(t *testing.T) {
	type step struct {
		in   event.TextDelta
		want string // text shown after it; ends with ? if the text so far is requested
	}
	tests := map[string][]step{
		"a complete answer passes": {
			{delta(1, 1, 0, "a"), "a"}, {delta(1, 1, 1, "b"), "ab"}, {delta(1, 1, 2, "c"), "abc"},
		},
		"duplicates are dropped": {
			{delta(1, 1, 0, "a"), "a"}, {delta(1, 1, 0, "a"), "a"}, {delta(1, 1, 1, "b"), "ab"}, {delta(1, 1, 0, "a"), "ab"},
		},
		"a late subscriber shows nothing before the text so far": {
			{delta(1, 1, 3, "d"), "?"}, {reset(delta(1, 1, 3, "abcd")), "abcd"}, {delta(1, 1, 4, "e"), "abcde"},
		},
		"nothing passes after a gap until it is filled": {
			{delta(1, 1, 0, "a"), "a"}, {delta(1, 1, 2, "c"), "a?"}, {delta(1, 1, 3, "d"), "a?"},
			{reset(delta(1, 1, 3, "abcd")), "abcd"}, {delta(1, 1, 4, "e"), "abcde"},
		},
		"a late delta does not fill the gap": {
			{delta(1, 1, 0, "a"), "a"}, {delta(1, 1, 2, "c"), "a?"}, {delta(1, 1, 1, "b"), "a?"},
			{reset(delta(1, 1, 2, "abc")), "abc"},
		},
		"a text older than a dropped delta is requested again": {
			{delta(1, 1, 0, "a"), "a"}, {delta(1, 1, 2, "c"), "a?"}, {delta(1, 1, 3, "d"), "a?"},
			{reset(delta(1, 1, 2, "abc")), "abc?"}, {reset(delta(1, 1, 3, "abcd")), "abcd"},
		},
		"the text so far fills a gap even if it adds nothing": {
			{delta(1, 1, 0, "a"), "a"}, {delta(1, 1, 2, "c"), "a?"},
			{reset(delta(1, 1, 0, "a")), "a?"}, {reset(delta(1, 1, 2, "abc")), "abc"},
		},
		"an unneeded text so far is dropped": {
			{delta(1, 1, 0, "a"), "a"}, {delta(1, 1, 1, "b"), "ab"}, {reset(delta(1, 1, 1, "ab")), "ab"}, {reset(delta(1, 1, 0, "a")), "ab"},
		},
		"a second attempt starts with a reset": {
			{delta(1, 1, 0, "a"), "a"}, {reset(delta(1, 2, 0, "")), ""}, {delta(1, 2, 1, "x"), "x"},
		},
		"the first delta of an attempt replaces its lost reset": {
			{delta(1, 1, 0, "a"), "a"}, {delta(1, 2, 0, "x"), "x"},
		},
		"a later delta of an attempt without its reset does not pass": {
			{delta(1, 1, 0, "a"), "a"}, {delta(1, 2, 1, "x"), "a?"}, {reset(delta(1, 2, 1, "x")), "x"},
		},
	}
	for name, steps := range tests {
		t.Run(name, func(t *testing.T) {
			var f stream.Fence
			var s screen
			for i, step := range steps {
				out, ok, gap := f.Pass(step.in)
				if ok {
					s.show(out)
				}
				got := s.text
				if gap {
					got += "?"
				}
				require.Equal(t, step.want, got, "after step %d", i+1)
			}
		})
	}
}

// screen applies deltas like a reader of a subscription.
type screen struct {
	request string
	text    string
}

func (s *screen) show(d event.TextDelta) {
	if d.Reset || d.RequestID != s.request {
		s.text = ""
	}
	s.request = d.RequestID
	s.text += d.Delta
}

// said is all published text, by request and attempt.
type said map[[2]int][]string

// through returns the text of the attempt up to an index.
func (s said) through(request, attempt, index int) string {
	return strings.Join(s[[2]int{request, attempt}][:index+1], "")
}

func TestFenceOutputIsAPrefixOfOneAttempt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := said{}
		var sent []event.TextDelta
		for request := range rapid.IntRange(1, 3).Draw(t, "requests") {
			for attempt := range rapid.IntRange(1, 3).Draw(t, "attempts") {
				request, attempt := request+1, attempt+1
				key := [2]int{request, attempt}
				for index := range rapid.IntRange(1, 6).Draw(t, "pieces") {
					d := delta(request, attempt, index, rapid.StringMatching(`[a-c]{1,2}`).Draw(t, "piece"))
					if index == 0 && attempt > 1 {
						d = reset(delta(request, attempt, 0, ""))
					}
					all[key] = append(all[key], d.Delta)
					sent = append(sent, d)
					if rapid.Bool().Draw(t, "someone asks") {
						sent = append(sent, reset(delta(request, attempt, index, all.through(request, attempt, index))))
					}
				}
			}
		}
		var f stream.Fence
		var s screen
		newest, held := sent[len(sent)-1], sent
		position := func(d event.TextDelta) int {
			return event.RequestNumber(d.RequestID)*10_000 + d.Attempt*100 + d.Index
		}
		shown, heard := 0, 0
		pass := func(d event.TextDelta) {
			if position(d)/100 < heard/100 {
				return // the log shows a later attempt
			}
			out, ok, gap := f.Pass(d)
			heard = max(heard, position(d))
			if !ok {
				require.True(t, gap || position(d) <= shown,
					"nothing new is dropped in silence: %+v", d)
				return
			}
			require.Equal(t, position(d) < heard, gap, "dropped deltas are requested")
			s.show(out)
			require.GreaterOrEqual(t, position(out), shown, "no earlier attempt reappears")
			shown = position(out)
			require.Equal(t, all.through(event.RequestNumber(out.RequestID), out.Attempt, out.Index), s.text)
		}
		for len(held) > 0 {
			// One of the next messages is delivered, lost or delivered twice.
			i := rapid.IntRange(0, min(3, len(held)-1)).Draw(t, "which")
			d := held[i]
			fate := rapid.SampledFrom([]string{"arrives", "arrives", "arrives", "is lost", "comes twice"}).Draw(t, "fate")
			if fate != "is lost" {
				pass(d)
			}
			if fate != "comes twice" {
				held = append(held[:i:i], held[i+1:]...)
			}
		}
		whole := all.through(event.RequestNumber(newest.RequestID), newest.Attempt, newest.Index)
		pass(reset(delta(event.RequestNumber(newest.RequestID), newest.Attempt, newest.Index, whole)))
		require.Equal(t, whole, s.text, "the latest text so far leaves no gap")
	})
}

func TestFencePassesACompleteStream(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var f stream.Fence
		for request := range rapid.IntRange(1, 3).Draw(t, "requests") {
			for attempt := range rapid.IntRange(1, 3).Draw(t, "attempts") {
				for index := range rapid.IntRange(1, 5).Draw(t, "pieces") {
					in := delta(request+1, attempt+1, index, "x")
					in.Reset = index == 0 && attempt > 0
					out, ok, gap := f.Pass(in)
					require.True(t, ok)
					require.False(t, gap)
					require.Equal(t, in, out)
				}
			}
		}
	})
}

func TestATextIsAsLongAsAnAnswerAtMost(t *testing.T) {
	var f stream.Fence
	piece := strings.Repeat("x", 256<<10)
	shown := 0
	for i := range 300 {
		if _, ok, _ := f.Pass(delta(1, 1, i, piece)); ok {
			shown += len(piece)
		}
	}
	require.Equal(t, event.MaxAnswerBytes, shown)
	_, ok, _ := f.Pass(reset(delta(1, 1, 300, piece)))
	require.True(t, ok, "the text so far replaces it")
	_, ok, _ = f.Pass(reset(delta(1, 1, 301, piece+piece+piece+piece)))
	require.False(t, ok)
	_, ok, _ = f.Pass(delta(2, 1, 0, piece))
	require.True(t, ok, "the next answer begins")
}
