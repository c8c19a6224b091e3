package e2e

import (
	"encoding/json"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/internal/doctor"
	"github.com/seed-9ed7edd4/chronicle/internal/exit"
	"github.com/seed-9ed7edd4/chronicle/internal/version"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
)

// doctor returns the findings of "starter doctor" by check, and its exit code.
func (w *world) doctor(args ...string) (found map[string]doctor.Finding, code int) {
	w.t.Helper()
	out, errOut, err := w.tryStarter("", append([]string{"doctor", "--json"}, args...)...)
	var exited *exec.ExitError
	if errors.As(err, &exited) {
		code = exited.ExitCode()
	} else {
		require.NoError(w.t, err, errOut)
	}
	found = map[string]doctor.Finding{}
	for line := range strings.Lines(out) {
		var f doctor.Finding
		require.NoError(w.t, json.Unmarshal([]byte(line), &f), line)
		found[f.Check] = f
	}
	return found, code
}

func TestDoctorNamesTheBrokenPartOfADeployment(t *testing.T) {
	t.Parallel()
	w := newWorldOn(t, environment{timeout: buildTimeout}, llmtest.Answer("Hello"))
	w.worker()
	w.say(w.open("examined"), "Hi") // the worker polls
	found, _ := w.doctor()
	for _, check := range []string{
		doctor.CheckConnection, "temporal.namespace", "workers.polling", "clock.skew", "nats.roundtrip", "store.access",
	} {
		severity := found[check].Severity
		require.True(t, severity == doctor.OK || severity == doctor.Warning, "%s: %s", check, found[check].Measured)
	}
	require.Contains(t, found["workers.polling"].Measured, version.Version)
	require.Equal(t, doctor.Skipped, found["workers.report"].Severity, "a worker built with worker/contexts does not support reports")

	tests := []struct {
		name    string
		breaks  func(*world)
		args    []string
		code    int
		check   string
		skipped string
	}{
		{"no worker", func(w *world) { w.queue = "nobody" }, nil, exit.Failure, "workers.polling", "workers.report"},
		{"a missing namespace", nil, []string{"--namespace", "missing"}, exit.Failure, "temporal.namespace", "workers.polling"},
		{"NATS is down", func(w *world) { w.on.nats = "nats://127.0.0.1:1" }, nil, exit.Failure, "nats.roundtrip", ""},
		{"an unusable store", func(w *world) { w.blobURL = "file:///dev/null/blobs" }, nil, exit.Failure, "store.access", ""},
		{"Temporal is down", func(w *world) { w.on.temporal = "127.0.0.1:1" }, nil, exit.Unreachable, doctor.CheckConnection, "clock.skew"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			broken := *w
			broken.t = t
			if tt.breaks != nil {
				tt.breaks(&broken)
			}
			found, code := broken.doctor(tt.args...)
			require.Equal(t, tt.code, code)
			require.Equal(t, doctor.Error, found[tt.check].Severity, found[tt.check].Measured)
			require.NotEmpty(t, found[tt.check].Fix)
			if tt.skipped != "" {
				require.Equal(t, doctor.Skipped, found[tt.skipped].Severity, found[tt.skipped].Measured)
			}
		})
	}
}
