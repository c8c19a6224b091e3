package main

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/reducer/transcript"
)

func log(bodies ...event.Body) (log []event.Event) {
	for i, body := range bodies {
		e := event.New(body)
		e.ID = event.FormatID("demo", i+1)
		e.ClientEventID = fmt.Sprint("k", i+1)
		log = append(log, e)
	}
	return log
}

func TestAcceptedInputIsInTheLogOnce(t *testing.T) {
	message := event.UserMessage{Content: "x"}
	recorded := log(message, event.InputRejected{Reason: "no"}, message)
	twice := append(recorded, recorded[2])
	forgotten := append(log(make([]event.Body, reducer.MaxRecent+1)...), recorded[0])
	for i := range forgotten[:reducer.MaxRecent+1] {
		forgotten[i].Body = message
	}
	for name, test := range map[string]struct {
		log    []event.Event
		input  input
		resets int
		want   string
	}{
		"recorded":                     {recorded, input{key: "k1", first: "k1", eventID: "demo:0001"}, 0, ""},
		"recorded later":               {recorded, input{key: "k1", first: "k1"}, 0, ""},
		"rejected":                     {recorded, input{key: "k2", first: "k2"}, 0, ""},
		"rejected with its array":      {recorded, input{key: "second", first: "k2"}, 0, ""},
		"lost by a termination":        {recorded, input{key: "gone", first: "gone", unsure: true}, 0, ""},
		"lost":                         {recorded, input{key: "gone", first: "gone"}, 0, "is not in the log"},
		"twice":                        {twice, input{key: "k3", first: "k3", eventID: "demo:0003"}, 0, "2 times"},
		"twice, and unsure":            {twice, input{key: "k3", first: "k3", unsure: true}, 0, "2 times"},
		"twice, after 1,000 others":    {forgotten, input{key: "k1", first: "k1", eventID: "demo:0001"}, 0, ""},
		"elsewhere":                    {recorded, input{key: "k1", first: "k1", eventID: "demo:0009"}, 0, "accepted as demo:0009"},
		"elsewhere, because of resets": {recorded, input{key: "k1", first: "k1", eventID: "demo:0009"}, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := (&target{accepted: []input{test.input}, resets: test.resets}).checkInputs(test.log)
			if test.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, test.want)
			}
		})
	}
}

func TestRequestsEndOnceAndDoNotOverlap(t *testing.T) {
	begins := func(id string) event.Body { return event.LLMRequestStarted{RequestID: id} }
	ends := func(id string) event.Body { return event.LLMRequestCompleted{RequestID: id} }
	for name, test := range map[string]struct {
		log  []event.Event
		want string
	}{
		"two":          {log(begins("r1"), begins("r1"), ends("r1"), begins("r2"), event.LLMRequestFailed{RequestID: "r2"}), ""},
		"never sent":   {log(event.LLMRequestFailed{RequestID: "r1"}), ""},
		"overlap":      {log(begins("r1"), begins("r2")), "starts r2"},
		"ends twice":   {log(begins("r1"), ends("r1"), ends("r1")), "ended before: true"},
		"ends another": {log(begins("r1"), ends("r2")), "ends r2"},
		"starts again": {log(begins("r1"), ends("r1"), begins("r1")), "starts r1"},
	} {
		t.Run(name, func(t *testing.T) {
			err := checkRequests(test.log)
			if test.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, test.want)
			}
		})
	}
}

func TestTranscriptsAreComparedWithoutProgress(t *testing.T) {
	document := func(events []event.Event) []transcript.Item {
		p := transcript.NewPatcher()
		for _, e := range events {
			p.Apply(e)
		}
		return p.Document().Entries
	}
	want := document(log(event.UserMessage{Content: "a"}))
	same := raw(t, want)
	require.NoError(t, compare(same, want))
	require.ErrorContains(t, compare(same, document(log(event.UserMessage{Content: "b"}))), "entry 0")
	require.ErrorContains(t, compare(nil, want), "entry 0 of 0")
	require.ErrorContains(t, compare(append(same, same...), want), "entry 1 of 2")
}

func raw(t *testing.T, items []transcript.Item) (all []json.RawMessage) {
	t.Helper()
	for _, item := range items {
		data, err := json.Marshal(item)
		require.NoError(t, err)
		all = append(all, data)
	}
	return all
}

func TestAKeyInALogIsFound(t *testing.T) {
	require.NoError(t, checkKey(log(event.UserMessage{Content: "x"})))
	require.ErrorContains(t, checkKey(log(event.UserMessage{Content: "it is " + key})), "contains the key")
}

// The steps of a seed must stay the same, however they are timed.
func TestASeedDeterminesTheSteps(t *testing.T) {
	names := func(seed uint64) (names []string) {
		o := options{seed: seed}
		for i := range 25 {
			names = append(names, o.choose(o.random(3, i)).name)
		}
		return names
	}
	require.Equal(t, names(1), names(1))
	require.NotEqual(t, names(1), names(2))
}
