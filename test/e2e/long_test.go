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

// long marks a test that takes minutes, whose name ends with "_Long". It runs in `make test-long`, without the race
// detector.
func long(t *testing.T) {
	t.Helper()
	requireSuffix(t, "_Long")
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

// requireSuffix fails a test that the Makefile would not select by its name.
func requireSuffix(t *testing.T, suffix string) {
	t.Helper()
	if !strings.HasSuffix(t.Name(), suffix) {
		t.Fatalf("rename the test: its name ends with %s", suffix)
	}
}

// large marks a test with megabytes of text or many contexts at once, whose name ends with "_Alone": `make test` runs
// it after the others, one at a time and without the race detector.
func large(t *testing.T) {
	t.Helper()
	requireSuffix(t, "_Alone")
}

// needsTimelyHeartbeats marks a test in which the result depends on the heartbeat timeout, such as one that kills
// a worker. In other tests, that timeout is patientFailover. A busy machine can delay the heartbeats of the next worker
// as well, so the name of the test ends with "_Alone", as those of large tests.
func needsTimelyHeartbeats(t *testing.T) {
	t.Helper()
	requireSuffix(t, "_Alone")
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
