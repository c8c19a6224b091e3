package main

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/bench/soak/agent"
	"github.com/seed-9ed7edd4/chronicle/event"
)

func TestCheckDeliveredFindsViolations(t *testing.T) {
	delivered := func(log []event.Event) (d agent.Delivered) {
		for _, e := range log {
			hash, err := agent.Hash(e)
			require.NoError(t, err)
			d.Events = append(d.Events, agent.DeliveredEvent{ID: e.ID, RunID: "run", Hash: hash})
		}
		return d
	}
	events, other := log(begin, m1, m2), log(begin, m1, m3)
	require.NoError(t, checkDelivered(delivered(events), events))
	require.NoError(t, checkDelivered(delivered(events), events[:2]), "the log has grown")
	require.ErrorContains(t, checkDelivered(delivered(events[:1]), events), "2 events from demo:0002 on were not delivered")
	require.ErrorContains(t, checkDelivered(delivered(other), events), "demo:0003 of run run was delivered, but it is not the event in the log")
	withProblem := delivered(events)
	withProblem.Problems = []error{errors.New("a gap")}
	require.ErrorContains(t, checkDelivered(withProblem, events), "a gap")
}
