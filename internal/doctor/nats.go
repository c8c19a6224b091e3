package doctor

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
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
	if d.IsClient {
		defer conn.Close()
	}
	if !conn.Connected() {
		reason, fix := "the connection is lost", "start NATS, or set --nats-url or NATS_URL"
		if err := conn.ConnectError(); err != nil {
			reason = text(err)
			if errors.Is(err, nats.ErrAuthorization) {
				fix = "set the credentials that the server accepts"
			}
		}
		return failure(fix, "NATS is not connected: %s", reason)
	}
	roundTrip := conn.RoundTrip
	if d.IsClient {
		roundTrip = conn.AskRoundTrip
	}
	best := time.Duration(-1)
	for range roundTrips {
		took, err := roundTrip(ctx)
		if err != nil {
			return failure("give the user the permissions in deploy/nats.conf", "%s", text(err))
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
