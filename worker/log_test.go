package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-9ed7edd4/chronicle/internal/doctor"
	"github.com/seed-9ed7edd4/chronicle/internal/exit"
	"github.com/seed-9ed7edd4/chronicle/internal/terminal"
)

func TestErrorsDoNotControlTheTerminal(t *testing.T) {
	var out bytes.Buffer
	code := execute(t.Context(), &app{out: &out, err: &out, getenv: func(string) string { return "" }}, []string{"--\x1b]0;t\x07\u009b31m"})
	require.Equal(t, exit.Usage, code)
	require.Contains(t, out.String(), "]0;t")
	require.Equal(t, terminal.Clean(out.String()), out.String())
}

func TestFindingsAtTheStartAreLoggedIfThereIsSomethingToDo(t *testing.T) {
	core, logs := observer.New(zap.DebugLevel)
	for severity, level := range map[doctor.Severity]string{doctor.OK: "", doctor.Skipped: "", doctor.Warning: "warn", doctor.Error: "error"} {
		logFinding(zap.New(core), doctor.Finding{Check: "nats.roundtrip", Severity: severity, Measured: "a message takes 1s", Why: "because", Fix: "move it"})
		entries := logs.TakeAll()
		if level == "" {
			require.Empty(t, entries)
			continue
		}
		require.Equal(t, level, entries[0].Level.String())
		require.Equal(t, "doctor: nats.roundtrip", entries[0].Message)
		require.Equal(t, map[string]any{"measured": "a message takes 1s", "why": "because", "fix": "move it"}, entries[0].ContextMap())
	}
}
