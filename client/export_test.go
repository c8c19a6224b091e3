package client

import (
	"iter"

	sdkclient "go.temporal.io/sdk/client"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Turn gives the tests a turn of their own.
type Turn struct{ turn turn }

func NewTurn(clientEventIDs ...string) *Turn { return &Turn{newTurn(clientEventIDs)} }

func (t *Turn) See(e event.Event) (mine, over bool) { return t.turn.see(e) }

func Merge(contextName, from string, recorded <-chan Entry, deltas <-chan event.TextDelta, wake chan<- struct{}) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		merge(contextName, place{last: event.Counter(from)}, recorded, deltas,
			func(d event.TextDelta) (event.TextDelta, bool) { return d, true }, wake, yield)
	}
}

func (config Config) ClientOptions() (sdkclient.Options, error) { return config.clientOptions() }

// WrongWith is what a pass finds wrong with a log.
func WrongWith(contextName string, log ...event.Event) []Problem {
	var problems []Problem
	p := pass{contextName: contextName}
	for _, e := range log {
		problems = append(problems, p.see(e)...)
	}
	return problems
}
