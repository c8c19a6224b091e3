package main

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/seed-9ed7edd4/chronicle/worker/devserver"
)

// Ports are taken from here. Temporal's schema for PostgreSQL keeps the ports of
// a cluster's members in 16 bits with a sign, so one that the system would pick
// kills the server.
const (
	firstPort = 10_000
	lastPort  = 32_767
)

// freePorts returns different ports that are free at this moment.
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
	return nil, fmt.Errorf("found no %d free ports in a row from %d to %d", count, firstPort, lastPort)
}
