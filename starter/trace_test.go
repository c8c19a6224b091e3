package main

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/internal/exit"
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

func TestAnInvalidVariableOfTelemetryIsAUsageError(t *testing.T) {
	t.Setenv("OTEL_TRACES_EXPORTER", "zipkin")
	for _, args := range [][]string{{"list"}, {"serve", "--listen", "127.0.0.1:0", "--index-dir", t.TempDir()}} {
		got := starter(t, newFake(t), "", args...)
		require.Equal(t, exit.Usage, got.code)
		require.Contains(t, got.errOut, `OTEL_TRACES_EXPORTER "zipkin": want otlp or none`)
	}
}
