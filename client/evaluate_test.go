package client_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
)

// A worker would get a reference, which it does not resolve in inputs of workflows.
func TestEvaluateRejectsAnInputThatTheServerWouldNotHold(t *testing.T) {
	c, err := client.New(client.Options{Temporal: new(temporal)}).Open("demo")
	require.NoError(t, err)
	system := strings.Repeat("Be brief. ", 10_000)
	_, err = c.Evaluate(t.Context(), "1", client.Evaluation{System: &system})
	require.ErrorAs(t, err, new(*event.FieldError))
	require.EqualError(t, err, "system: the evaluation has 100073 bytes of JSON (at most 49152)")
}
