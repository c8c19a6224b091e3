package doctor

import (
	"context"
	"time"
)

// maxRoundTrip is far below what a reader notices between tokens.
const maxRoundTrip = 50 * time.Millisecond

const roundTrips = 5

func (d *Deployment) roundTrip(ctx context.Context) Result {
	if d.NATS == nil {
		return skipped("live deltas are off (--nats-url none)")
	}
	conn, err := d.NATS()
	if err != nil {
		return failure("correct --nats-url or NATS_URL, or the credentials", "%s", text(err))
	}
	if d.IsOwner {
		defer conn.Close()
	}
	if !conn.Connected() {
		reason := "the connection is lost"
		if err := conn.ConnectError(); err != nil {
			reason = text(err)
		}
		return failure("start NATS, or set --nats-url or NATS_URL", "NATS is not connected: %s", reason)
	}
	best := time.Duration(-1)
	for range roundTrips {
		took, err := conn.RoundTrip(ctx)
		if err != nil {
			return failure("allow the user to publish and subscribe to the subjects chronicle.>", "%s", text(err))
		}
		if best < 0 || took < best {
			best = took
		}
	}
	if best > maxRoundTrip {
		return warning("run NATS near the workers and clients", "a message takes %v, more than %v", latency(best), maxRoundTrip)
	}
	return ok("a message takes %v", latency(best))
}
