package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

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
