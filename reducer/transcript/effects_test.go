package transcript_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event/eventtest/golden"
	"github.com/seed-9ed7edd4/chronicle/reducer/transcript"
)

// A story in testdata/effects has a script of events, one per line, and in "want" the
// effects of each and the calls and results in the state after it.
func TestEffectsAndStates(t *testing.T) {
	golden.Stories(t, "testdata/effects/*.txtar", func(t *testing.T, script string) string {
		var out strings.Builder
		var state transcript.State
		n := 0
		for line := range strings.Lines(script) {
			if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			n++
			fmt.Fprintf(&out, "> %s\n", line)
			var effects []transcript.Effect
			state, effects = transcript.Reduce(state, logged(t, n, line))
			for _, effect := range effects {
				kind := strings.TrimPrefix(fmt.Sprintf("%T", effect), "transcript.")
				fmt.Fprintf(&out, "effect %s %s\n", kind, indented(t, effect))
			}
			fmt.Fprintf(&out, "state %s\n\n", indented(t, state.View()))
		}
		return out.String()
	})
}

func indented(t *testing.T, value any) string {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	require.NoError(t, encoder.Encode(value))
	return strings.TrimSpace(out.String())
}
