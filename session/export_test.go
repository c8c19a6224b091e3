package session

import (
	"iter"

	"go.temporal.io/sdk/client"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Turn gives the tests a turn of their own.
type Turn struct{ turn turn }

func NewTurn(clientEventIDs ...string) *Turn { return &Turn{turn{waiting: clientEventIDs}} }

func (t *Turn) See(e event.Event) (mine, over bool) { return t.turn.see(e) }

// Logged is an entry of a log that is being followed.
type Logged = logged

func Entry(e event.Event) Logged { return logged{event: e} }

func End(err error) Logged { return logged{err: err} }

func Merge(contextName, from string, recorded <-chan Logged, deltas <-chan event.TextDelta) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		merge(contextName, place{last: event.Counter(from)}, recorded, deltas,
			func(d event.TextDelta) (event.TextDelta, bool) { return d, true }, yield)
	}
}

func (config Config) ClientOptions() (client.Options, error) { return config.clientOptions() }
