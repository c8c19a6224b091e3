package devserver

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// panicked is what a program writes if it panics.
var panicked = "panic: unable to start\n\ngoroutine 1 [running]:\n" + strings.Repeat("main.main()\n\tmain.go:18 +0x96\n", 10)

func TestErrorsHaveTheLastLinesOfTheLog(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ log, want string }{
		"records, and other text":      {"level=WARN msg=slow\n\nfatal error\npanic: no\n", "level=WARN msg=slow\nfatal error\npanic: no"},
		"a stack trace":                {"level=ERROR msg=a\n" + panicked + "level=WARN msg=late\n", "level=ERROR msg=a\npanic: unable to start\nlevel=WARN msg=late"},
		"more than ten lines":          {strings.Repeat("early\n", 2) + strings.Repeat("late\n", 10), strings.TrimSpace(strings.Repeat("late\n", 10))},
		"the greeting":                 {"Temporal CLI 1.5.1 (Server 1.29.1, UI 2.42.1)\n\nServer:  localhost:7233\nUI:      http://localhost:8233\nMetrics: http://localhost:1/metrics\n", ""},
		"the greeting of older builds": {"CLI 0.0.0 (Server 1.29.1, UI 2.42.1)\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, test.want, strings.TrimPrefix(lastLines(test.log), "; last lines:\n"))
		})
	}
}
