package e2e

import (
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// longVariable enables the long tests. `make test-long` sets it.
const longVariable = "CHRONICLE_LONG_TESTS"

// long marks a test that takes minutes and runs without the race detector. The call must
// stand on its own line: `make test-long` searches for it.
func long(t *testing.T) {
	t.Helper()
	if os.Getenv(longVariable) != "1" {
		t.Skip("long tests, run by make test-long")
	}
}

var heavy sync.Mutex

// onlyHeavy marks a long test that keeps the server and the processors busy. It runs beside
// tests that mostly wait, but not beside another heavy one; the time that it reports includes
// the wait for that one.
func onlyHeavy(t *testing.T) {
	t.Helper()
	t.Parallel()
	heavy.Lock()
	t.Cleanup(heavy.Unlock)
}

// large marks a test with megabytes of text or many contexts at once, which `make test` without T runs
// without the race detector. The call must be the first statement, on its own line: the Makefile searches
// for it.
func large(t *testing.T) {
	t.Helper()
	t.Parallel()
}

// needsTimelyHeartbeats marks a test in which the result depends on the heartbeat timeout, such as one that kills
// a worker. In other tests, that timeout is patientFailover. A busy machine can
// delay the heartbeats of the next worker as well, so `make test` without T runs marked tests two at a time,
// after all others and without the race detector. The call must be the first statement, on its own line: the
// Makefile searches for it.
func needsTimelyHeartbeats(t *testing.T) {
	t.Helper()
	t.Parallel()
	timely.Store(t.Name(), true)
}

// patientFailover is longer than the default, because another attempt after a late heartbeat would change the result
// of a test.
const patientFailover = 15 * time.Second

// failover returns contexts.Options.Failover for a test; 0: the default.
func failover(t *testing.T) time.Duration {
	if isTimely(t) {
		return 0
	}
	return patientFailover
}

var timely sync.Map // names of tests that called needsTimelyHeartbeats

func isTimely(t *testing.T) bool {
	name, _, _ := strings.Cut(t.Name(), "/")
	_, ok := timely.Load(name)
	return ok
}
