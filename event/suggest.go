package event

import (
	"fmt"
	"strings"
)

// maxDistance is the largest Levenshtein distance between an unknown name and the name that Suggest suggests; for
// shorter known names, it is half of their length.
const maxDistance = 3

// Suggest returns the known name that resembles an unknown one, or lists all known ones:
// (did you mean "approve"?).
func Suggest(name string, known ...string) string {
	if len(known) == 0 {
		return ""
	}
	nearest, nearestAt := "", maxDistance+1
	for _, k := range known {
		if d := distance(plain(name), plain(k)); d < nearestAt && d <= len(k)/2 {
			nearest, nearestAt = k, d
		}
	}
	if nearest != "" {
		return fmt.Sprintf("(did you mean %q?)", nearest)
	}
	return fmt.Sprintf("(want one of %s)", strings.Join(known, ", "))
}

// resembles reports whether a name is probably a misspelt known name: it differs by case, by separators, or in
// one of eight characters.
func resembles(name, known string) bool {
	return distance(plain(name), plain(known)) <= len(known)/8
}

// plain returns a name without its case and separators.
func plain(name string) string {
	return strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(name))
}

// distance returns the Levenshtein distance in bytes.
func distance(a, b string) int {
	if len(a) > MaxNameBytes || len(b) > MaxNameBytes {
		return max(len(a), len(b)) // not a name
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			substituted := diagonal
			if a[i] != b[j] {
				substituted++
			}
			diagonal = row[j+1]
			row[j+1] = min(substituted, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
