package doctor

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestACheckThatHangsCostsOnlyItself(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	found := examine(t,
		Check{Name: "hangs", Why: "because", Timeout: time.Millisecond, Run: func(context.Context) Result {
			<-release
			return ok("released")
		}},
		Check{Name: "depends", Why: "because", Needs: "hangs", Run: func(context.Context) Result { return ok("unexpected") }},
		Check{Name: "other", Why: "because", Run: func(context.Context) Result { return ok("fine") }},
	)
	requireFinding(t, found["hangs"], Error, "no result within 1ms")
	requireFinding(t, found["depends"], Skipped, "requires hangs")
	requireFinding(t, found["other"], OK, "fine")
}

func TestACheckRunsAfterAWarning(t *testing.T) {
	found := examine(t,
		Check{Name: "first", Why: "because", Run: func(context.Context) Result { return warning("do it", "slow") }},
		Check{Name: "second", Why: "because", Needs: "first", Run: func(context.Context) Result { return ok("fine") }},
	)
	requireFinding(t, found["second"], OK, "fine")
}

func TestACancelledRunDeletesItsWorkflows(t *testing.T) {
	s := newServer()
	ctx, cancel := context.WithCancel(t.Context())
	s.onDescribe = cancel
	d := s.deployment()
	for range Run(ctx, d.ConnectionChecks()[:3]) {
	}
	require.Len(t, s.started, 1)
	require.Equal(t, []string{s.started[0].ID}, s.deleted)
}

func TestFindingsHaveStableFields(t *testing.T) {
	all := Finding{Check: "a.b", Worker: "1@a", Severity: Warning, Measured: "m", Why: "w", Fix: "f", DurationMs: 7}
	text, err := json.Marshal(all)
	require.NoError(t, err)
	require.JSONEq(t, `{"check":"a.b","worker":"1@a","severity":"warning","measured":"m","why":"w","fix":"f","durationMs":7}`, string(text))
	text, err = json.Marshal(Finding{Check: "a.b", Severity: OK, Measured: "m", Why: "w"})
	require.NoError(t, err)
	require.JSONEq(t, `{"check":"a.b","severity":"ok","measured":"m","why":"w","durationMs":0}`, string(text))
}
