package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/seed-9ed7edd4/chronicle/internal/exit"
	"github.com/seed-9ed7edd4/chronicle/internal/terminal"
)

func TestLogLinesDoNotControlTheTerminal(t *testing.T) {
	const hostile = "\x1b]0;t\x07\u009b31m\u202e\x9b5m\x7f"
	for _, asJSON := range []bool{false, true} {
		var out bytes.Buffer
		log := newLogger(&out, asJSON, zap.InfoLevel)
		log.Warn(hostile, zap.Error(errors.New(hostile)), zap.String(hostile, hostile))
		structured(log, hostile, zap.WarnLevel).Warn(hostile, "model", hostile)
		require.Equal(t, terminal.Clean(out.String()), out.String())
		if asJSON {
			for decoder := json.NewDecoder(&out); decoder.More(); {
				var line map[string]any
				require.NoError(t, decoder.Decode(&line))
				require.Contains(t, line["msg"], "\x1b]0;t\x07\u009b31m\u202e", "JSON preserves the text")
			}
		}
	}
}

func TestErrorsDoNotControlTheTerminal(t *testing.T) {
	var out bytes.Buffer
	code := execute(t.Context(), &app{out: &out, err: &out, getenv: func(string) string { return "" }}, []string{"--\x1b]0;t\x07\u009b31m"})
	require.Equal(t, exit.Usage, code)
	require.Contains(t, out.String(), "]0;t")
	require.Equal(t, terminal.Clean(out.String()), out.String())
}
