package main

import (
	"fmt"
	"time"

	"github.com/seed-9ed7edd4/chronicle/bench/rig"
)

// viewers has one viewer, and then a thousand, follow a context's transcript through a gateway during
// long answers of fifty tokens per second.
func viewers(r *runner) error {
	const name = "viewed"
	talker := r.context(name)
	if _, err := talker.turn(message("begin-viewed")); err != nil {
		return err
	}
	gateway, err := r.rig.StartGateway(r.ctx)
	if err != nil {
		return err
	}
	defer gateway.Stop()
	look := func(viewers, rounds int) (delays, memory samples, err error) {
		if err := gateway.View(r.ctx, name, viewers); err != nil {
			return nil, nil, err
		}
		m := rig.Message{Tokens: 250, Every: 20 * time.Millisecond}
		for round := range rounds {
			m.Key = fmt.Sprintf("%s-by-%d-%d", name, viewers, round)
			if _, err := talker.turn(m); err != nil {
				return nil, nil, err
			}
			seen, err := talker.await(rig.Viewed, m.Key)
			if err != nil {
				return nil, nil, err
			}
			if len(seen.Delays) != viewers*m.Tokens {
				return nil, nil, fmt.Errorf("%d viewers saw %d tokens of %d", viewers, len(seen.Delays), m.Tokens)
			}
			delays.add(seen.Delays...)
			used, err := gateway.RSS()
			if err != nil {
				return nil, nil, err
			}
			memory = append(memory, float64(used)/1e6)
		}
		return delays, memory, nil
	}
	one, _, err := look(1, r.times(5))
	if err != nil {
		return err
	}
	all, memory, err := look(r.times(1000), r.times(5))
	if err != nil {
		return err
	}
	r.report.add("viewer_delta_ms", "ms", one)
	r.report.add("viewers_1000_delta_ms", "ms", all)
	r.report.add("gateway_rss_1000_mb", "MB", memory)
	// The growth from the first answer to the last.
	r.report.add("gateway_rss_1000_growth_mb", "MB", samples{memory[len(memory)-1] - memory[0]})
	return nil
}
