package main

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSendPrintsTheTraceID(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "")
	run := starter(t, newFake(t, answered("demo:r0001", 1, "Hi")), "", "send", "-n", "demo", "-m", "Hello", "--trace")
	require.Zero(t, run.code)
	require.Regexp(t, regexp.MustCompile(`(?m)^trace [0-9a-f]{32}$`), run.errOut)

	t.Setenv("TRACEPARENT", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	run = starter(t, newFake(t, answered("demo:r0001", 1, "Hi")), "", "send", "-n", "demo", "-m", "Hello", "--trace")
	require.Contains(t, run.errOut, "trace 0af7651916cd43dd8448eb211c80319c\n")

	run = starter(t, newFake(t, answered("demo:r0001", 1, "Hi")), "", "send", "-n", "demo", "-m", "Hello")
	require.NotContains(t, run.errOut, "trace")
}
