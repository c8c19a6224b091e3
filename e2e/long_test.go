package e2e

import (
	"os"
	"testing"
)

// longVariable enables the long stories. `make test-long` sets it.
const longVariable = "CHRONICLE_LONG_TESTS"

// long marks a test that takes minutes: thousands of turns, large states. It is
// the first statement of the test, alone on its line, since `make test-long`
// selects tests by it. Long tests run without the race detector.
func long(t *testing.T) {
	t.Helper()
	if os.Getenv(longVariable) != "1" {
		t.Skip("long tests, run by make test-long")
	}
}
