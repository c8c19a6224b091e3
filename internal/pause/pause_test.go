package pause_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/internal/pause"
)

func TestForWaitsForTheDurationOrTheEndOfTheContext(t *testing.T) {
	for name, test := range map[string]struct {
		timeout, d, waits time.Duration
		want              bool
	}{
		"the duration is shorter":  {2 * time.Second, time.Second, time.Second, true},
		"the context ends first":   {time.Second, 2 * time.Second, time.Second, false},
		"no duration":              {time.Second, 0, 0, true},
		"the context has ended":    {0, time.Second, 0, false},
		"ended, and no duration":   {0, 0, 0, false},
		"ended, negative duration": {0, -time.Second, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), test.timeout)
				defer cancel()
				began := time.Now()
				require.Equal(t, test.want, pause.For(ctx, test.d))
				require.Equal(t, test.waits, time.Since(began))
			})
		})
	}
}
