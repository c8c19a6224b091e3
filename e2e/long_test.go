package e2e

import (
	"os"
	"testing"
)

// longVariable enables the long tests. `make test-long` sets it.
const longVariable = "CHRONICLE_LONG_TESTS"

// long marks a test that takes minutes. It must be a statement on its own line, because
// `make test-long` selects tests by it. Long tests run without the race detector.
func long(t *testing.T) {
	t.Helper()
	if os.Getenv(longVariable) != "1" {
		t.Skip("long tests, run by make test-long")
	}
}

// large marks a test with megabytes of text, most of whose time under the race detector
// is spent in encoding. It is the first statement of the test, alone on its line, since
// `make test` selects tests by it, and runs them without the race detector.
func large(t *testing.T) {
	t.Helper()
	t.Parallel()
}
