package e2e

import (
	"os"
	"sync"
	"testing"
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

// large marks a test with megabytes of text or many contexts at once, which `make test` runs
// without the race detector. The call must be the first statement, on its own line: the Makefile searches
// for it.
func large(t *testing.T) {
	t.Helper()
	t.Parallel()
}

// needsTimelyHeartbeats marks a test in which the result depends on [activities.HeartbeatTimeout], such
// as one that kills a worker: a busy machine can delay the heartbeats of the next worker as well. `make test`
// runs it with the large tests, after those with the race detector. The call must be the first statement, on its
// own line: the Makefile searches for it.
func needsTimelyHeartbeats(t *testing.T) {
	t.Helper()
	t.Parallel()
}
