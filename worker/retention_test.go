package main_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/doctor"
)

func TestAWorkerAppliesItsRules(t *testing.T) {
	t.Parallel()
	config := filepath.Join(t.TempDir(), "chronicle.toml")
	require.NoError(t, os.WriteFile(config, []byte("[[retention]]\nafter = \"2s\"\nlabels = { purpose = \"test\" }\n"), 0o600))
	worker := dev(t, t.TempDir(), "--config", config)
	facts := worker.ready()
	require.Equal(t, "after 2s, purpose=test", facts["retention"])
	c := dial(t, facts)
	for name, labels := range map[string]map[string]string{"old": {"purpose": "test"}, "kept": {"purpose": "work"}} {
		of, err := c.Open(name)
		require.NoError(t, err)
		_, err = of.Send(t.Context(), event.New(event.SetDetails{Labels: labels}))
		require.NoError(t, err)
	}
	old, err := c.Open("old")
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		receipt, err := old.Deletion(t.Context())
		return err == nil && !receipt.EndedAt.IsZero() && receipt.Error == ""
	}, time.Minute, 100*time.Millisecond)
	kept, err := c.Open("kept")
	require.NoError(t, err)
	_, err = kept.State(t.Context())
	require.NoError(t, err)

	_, workers := diagnose(t, facts)
	require.Equal(t, doctor.Warning, workers["retention"].Severity)
	require.Equal(t, "after 2s, purpose=test", workers["retention"].Measured)
	require.Contains(t, workers["retention"].Fix, "set after of rule 1 to a day or more")
}
