package main

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/seed-9ed7edd4/chronicle/internal/devserver"
)

// The range of ports. Temporal's PostgreSQL schema stores the ports of cluster members
// as signed 16-bit integers, so the server crashes on most ephemeral ports.
const (
	firstPort = 10_000
	lastPort  = 32_767
)

func freePorts(count int) ([]int, error) {
	for range 100 {
		first := firstPort + rand.IntN(lastPort-firstPort-count)
		ports := make([]int, count)
		for i := range ports {
			ports[i] = first + i
		}
		_, err := devserver.FreePorts(ports...)
		if err == nil || !errors.As(err, new(*devserver.PortError)) {
			return ports, err
		}
	}
	return nil, fmt.Errorf("found no %d consecutive free ports between %d and %d", count, firstPort, lastPort)
}
