package main

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/internal/doctor"
	"github.com/seed-9ed7edd4/chronicle/internal/exit"
)

// examined runs "starter doctor" with findings.
func examined(t *testing.T, findings []doctor.Finding, err error, args ...string) (got outcome, call bool) {
	t.Helper()
	var out, errOut bytes.Buffer
	a := &app{
		streams: streams{out: &out, err: &errOut},
		examine: func(_ context.Context, _ client.Config, isCall bool) (iter.Seq[doctor.Finding], error) {
			call = isCall
			return slices.Values(findings), err
		},
	}
	code := execute(t.Context(), a, append([]string{"doctor"}, args...))
	return outcome{code, out.String(), errOut.String()}, call
}

var healthy = doctor.Finding{Check: "temporal.connection", Severity: doctor.OK, Measured: "127.0.0.1:7233 responds in 3ms", Why: "w"}

func TestDoctorExpandsProblemsOnly(t *testing.T) {
	got, call := examined(t, []doctor.Finding{
		healthy,
		{Check: "temporal.namespace", Severity: doctor.Warning, Measured: "closed runs are kept for 24h0m0s", Why: "events may be lost", Fix: "raise it"},
		{Check: "nats.roundtrip", Severity: doctor.Skipped, Measured: "live deltas are off", Why: "w"},
		{Check: "provider.openrouter", Worker: "1@a", Severity: doctor.Warning, Measured: "slow\x1b[31m\nnews", Why: "w", Fix: "wait"},
	}, nil)
	require.False(t, call)
	require.Equal(t, outcome{exit.OK, `ok       temporal.connection    127.0.0.1:7233 responds in 3ms
warning  temporal.namespace     closed runs are kept for 24h0m0s
         why  events may be lost
         fix  raise it
skipped  nats.roundtrip         live deltas are off
warning    provider.openrouter  slow\u001b[31m news
         why  w
         fix  wait
`, "1 ok, 2 warnings, 0 errors, 1 skipped\n"}, got)
}

func TestDoctorFailsOnErrors(t *testing.T) {
	broken := doctor.Finding{Check: "store.access", Severity: doctor.Error, Measured: "cannot write", Why: "w", Fix: "f", DurationMs: 3}
	got, call := examined(t, []doctor.Finding{healthy, broken}, nil, "--json", "--call")
	require.True(t, call)
	require.Equal(t, outcome{exit.Failure, `{"check":"temporal.connection","severity":"ok","measured":"127.0.0.1:7233 responds in 3ms","why":"w","durationMs":0}
{"check":"store.access","severity":"error","measured":"cannot write","why":"w","fix":"f","durationMs":3}
`, "starter: check the deployment: 1 error\n"}, got)

	got, _ = examined(t, nil, errors.New("load the configuration: no such profile"))
	require.Equal(t, exit.Failure, got.code)
}

func TestDoctorOnAClosedPort(t *testing.T) {
	var out, errOut bytes.Buffer
	code := execute(t.Context(), &app{streams: streams{out: &out, err: &errOut}},
		[]string{"doctor", "--address", "127.0.0.1:1", "--nats-url", "none", "--blob-url", "none"})
	require.Equal(t, exit.Unreachable, code)
	require.Contains(t, out.String(), "error    temporal.connection    127.0.0.1:1 does not respond")
	require.Contains(t, errOut.String(), "starter: cannot reach Temporal at 127.0.0.1:1")
}
