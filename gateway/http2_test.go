package gateway_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
)

// http2Stream is a stream of HTTP/2, which net/http resets at its write deadline even if nothing is being written.
type http2Stream struct {
	*downlink
	shortest time.Duration // time between an extension and the deadline that it extends
}

func (s *http2Stream) SetWriteDeadline(by time.Time) error {
	if !s.writeBy.IsZero() {
		s.shortest = min(s.shortest, time.Until(s.writeBy))
	}
	return s.downlink.SetWriteDeadline(by)
}

func TestAStreamOfHTTP2IsExtendedBeforeItsDeadline(t *testing.T) {
	for _, pause := range []time.Duration{time.Hour, 3 * time.Second, 14_990 * time.Millisecond, 15_010 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			l := newLog(event.UserMessage{Content: "Hello"})
			g := gateway.New(fakeClient{log: l}, gateway.Options{KeepAlive: 14_999 * time.Millisecond})
			defer g.Close()
			ctx, leave := context.WithTimeout(t.Context(), 10*time.Minute)
			defer leave()
			s := &http2Stream{newDownlink(t, "/contexts/demo/events", 64<<10, 0), time.Hour}
			s.request.Header.Set("Accept", "text/event-stream")
			go func() {
				for {
					select { // bubble time
					case <-time.After(pause):
						l.record(event.UserMessage{Content: "More"})
					case <-ctx.Done():
						return
					}
				}
			}()
			g.ServeHTTP(s, s.request.WithContext(ctx))
			require.Greater(t, s.deadline.Load(), int32(20))
			require.Greater(t, s.shortest, 4*time.Second, "pause of %s", pause)
		})
	}
}
