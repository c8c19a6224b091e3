//go:build !race

package e2e

// raceEnabled says whether the race detector is on.
const raceEnabled = false
