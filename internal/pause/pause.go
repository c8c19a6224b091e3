// Package pause waits for a duration or the end of a context.
package pause

import (
	"context"
	"time"
)

// For waits for d and returns true. If ctx ends first, it returns false.
func For(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
