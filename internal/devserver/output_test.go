package devserver_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/internal/devserver"
)

// uiPortTaken is what the Web UI writes if its port is in use.
const uiPortTaken = `{"time":"2026-01-02T03:04:05Z","level":"FATAL","prefix":"echo","file":"server.go","line":"152","message":"listen tcp 127.0.0.1:8233: bind: address already in use"}`

// panicked is what a program writes if it panics.
var panicked = "panic: unable to start\n\ngoroutine 1 [running]:\n" + strings.Repeat("main.main()\n\tmain.go:18 +0x96\n", 10)

func TestOutput(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		writes []string
		logged string
		tail   string
	}{
		{
			name:   "a record keeps its time, level and fields",
			writes: []string{`{"time":"2026-01-02T03:04:05.5Z","level":"WARN","msg":"slow","service":"history","error":"disk"}` + "\n"},
			logged: `time=2026-01-02T03:04:05.500Z level=WARN msg=slow error=disk service=history` + "\n",
			tail:   "WARN slow: disk",
		},
		{
			name:   "a line that comes in pieces is one line",
			writes: []string{`{"time":"2026-01-02T03:04:05Z","lev`, `el":"ERROR","msg":"a"}`, "\n\n"},
			logged: "time=2026-01-02T03:04:05.000Z level=ERROR msg=a\n",
			tail:   "ERROR a",
		},
		{
			name:   "the Web UI has other names for the message and for the level",
			writes: []string{uiPortTaken + "\n"},
			logged: `time=2026-01-02T03:04:05.000Z level=ERROR msg="listen tcp 127.0.0.1:8233: bind: address already in use" file=server.go line=152 prefix=echo` + "\n",
			tail:   "ERROR listen tcp 127.0.0.1:8233: bind: address already in use",
		},
		{
			name:   "other text is kept for errors, but is no warning",
			writes: []string{"fatal error\npanic: no\n"},
			logged: "",
			tail:   "fatal error\npanic: no",
		},
		{
			name:   "stack traces are not part of the tail",
			writes: []string{uiPortTaken + "\n" + panicked + "\n", `{"time":"2026-01-02T03:04:05Z","level":"WARN","msg":"late"}` + "\n"},
			logged: `time=2026-01-02T03:04:05.000Z level=ERROR msg="listen tcp 127.0.0.1:8233: bind: address already in use" file=server.go line=152 prefix=echo` + "\n" +
				"time=2026-01-02T03:04:05.000Z level=WARN msg=late\n",
			tail: "ERROR listen tcp 127.0.0.1:8233: bind: address already in use\npanic: unable to start\nWARN late",
		},
		{
			name: "the greeting is not part of the tail",
			writes: []string{"Temporal CLI 1.5.1 (Server 1.29.1, UI 2.42.1)\n\n" +
				"Server:  localhost:7233\nUI:      http://localhost:8233\nMetrics: http://localhost:1/metrics\n"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var logged, file bytes.Buffer
			logger := slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelWarn}))
			w, tail := devserver.NewOutput(&file, logger)
			var all string
			for _, s := range tt.writes {
				_, err := io.WriteString(w, s)
				require.NoError(t, err)
				all += s
			}
			require.Equal(t, tt.logged, logged.String())
			require.Equal(t, tt.tail, tail())
			require.Equal(t, all, file.String(), "the file has the unmodified output")
		})
	}
	t.Run("only the last ten lines are kept", func(t *testing.T) {
		t.Parallel()
		w, tail := devserver.NewOutput(io.Discard, slog.New(slog.DiscardHandler))
		for i := range 12 {
			_, err := fmt.Fprintln(w, "line", i)
			require.NoError(t, err)
		}
		require.Equal(t, "line 2\nline 3\nline 4\nline 5\nline 6\nline 7\nline 8\nline 9\nline 10\nline 11", tail())
	})
}
