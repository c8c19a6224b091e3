package client

import (
	"iter"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/stream"
)

// Folded exports turn for tests.
type Folded struct{ turn turn }

func NewTurn(clientEventIDs ...string) *Folded { return &Folded{newTurn(clientEventIDs)} }

func (t *Folded) Add(e event.Event) (belongs, ends bool) { return t.turn.add(e) }

func Merge(contextName, from string, recorded <-chan Entry, deltas <-chan stream.Delta, wake chan<- struct{}) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		merge(contextName, newPosition(from, event.Running{}), recorded, gapless(deltas), wake, yield)
	}
}

// gapless is a source without gaps.
type gapless <-chan stream.Delta

func (g gapless) Messages() <-chan stream.Delta { return g }

func (gapless) Decode(d stream.Delta) (stream.Delta, bool) { return d, true }

func (gapless) Pass(d stream.Delta) (stream.Delta, bool) { return d, true }

var AnswerOf = answerOf

// Check returns the problems of a log.
func Check(contextName string, log ...event.Event) []Problem {
	var problems []Problem
	v := verifier{contextName: contextName}
	for _, e := range log {
		problems = append(problems, v.check(e)...)
	}
	return problems
}
