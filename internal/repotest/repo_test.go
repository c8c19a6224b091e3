// Package repotest checks the repository: its documentation, its imports and
// docker-compose.yml. The tests run in the root folder.
package repotest

import (
	"fmt"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
