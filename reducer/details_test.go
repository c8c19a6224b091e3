package reducer_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// A continuation decodes the details of the first part of a log, and a reader of the rest folds them on.
func TestDetailsDoNotDependOnHowALogIsSplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := eventtest.Log("demo").Draw(t, "log")
		at := rapid.IntRange(0, len(log)).Draw(t, "at")
		fold := func(d reducer.Details, events []event.Event) reducer.Details {
			for _, e := range events {
				d = d.With(e.Body)
			}
			return d
		}
		data, err := json.Marshal(fold(reducer.Details{}, log[:at]))
		require.NoError(t, err)
		var decoded reducer.Details
		require.NoError(t, json.Unmarshal(data, &decoded))
		whole := reducer.Load("demo", reducer.Reduce, log...).Details
		require.Equal(t, whole, fold(decoded, log[at:]))
	})
}

func TestAForkHasTheTitleAndLabelsOfItsOrigin(t *testing.T) {
	log := numbered(1,
		event.SetDetails{Title: new("A trip"), Labels: map[string]string{"team": "a"}, Archived: new(true), Owner: "ann"},
		event.SessionStarted{LoadedEventCount: 1},
	)
	s := reducer.Load("demo", reducer.Reduce, log...)
	require.Equal(t, reducer.Details{Title: "A trip", Labels: map[string]string{"team": "a"}, Archived: true, Owner: "ann"}, s.Details)
	s, _ = reducer.Step(s, reducer.Opened{At: eventtest.Epoch, ForkedFrom: "other:0002"})
	require.Equal(t, reducer.Details{Title: "A trip", Labels: map[string]string{"team": "a"}}, s.Details)
	s, _ = reducer.Step(s, reducer.Received{At: eventtest.Epoch, Events: []event.Event{event.New(event.SetDetails{Owner: "bob"})}})
	require.Equal(t, "bob", s.Details.Owner)
}
