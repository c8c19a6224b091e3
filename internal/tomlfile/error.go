package tomlfile

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Error is an error in a line of a file.
type Error struct {
	Line int // counted from 1; 0: unknown, or part of Err
	Err  error
}

func (e *Error) Error() string { return e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// At adds the name of the file to an error, and its line if the error has one: providers.toml:3: ….
func At(name string, err error) error {
	var at *Error
	if errors.As(err, &at) && at.Line > 0 {
		return fmt.Errorf("%s:%d: %w", name, at.Line, err)
	}
	return fmt.Errorf("%s: %w", name, err)
}

// maxDistance is the largest Levenshtein distance between an unknown key and the key that Suggest names.
const maxDistance = 3

// Suggest returns the known key that resembles an unknown one, or lists all known ones:
// (did you mean "url"?).
func Suggest(key string, known ...string) string {
	if len(known) == 0 {
		return ""
	}
	nearest := slices.MinFunc(known, func(a, b string) int { return distance(a, key) - distance(b, key) })
	if distance(nearest, key) <= maxDistance {
		return fmt.Sprintf("(did you mean %q?)", nearest)
	}
	return fmt.Sprintf("(want one of %s)", strings.Join(known, ", "))
}

// distance returns the Levenshtein distance in bytes.
func distance(a, b string) int {
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
