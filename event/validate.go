package event

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	MaxNameBytes    = 256
	maxURLBytes     = 2048
	maxNestingDepth = 100
)

// enum is a type of texts with known values.
type enum[T any] interface {
	~string
	Values() []T
}

func known[T enum[T]](field string, value T) error {
	if values := value.Values(); !slices.Contains(values, value) {
		return fieldf(field, "want %s, got %s", oneOf(values), quote(string(value)))
	}
	return nil
}

func knownOrNone[T enum[T]](field string, value T) error {
	if value == "" {
		return nil
	}
	return known(field, value)
}

func oneOf[T ~string](values []T) string {
	var list strings.Builder
	for i, value := range values {
		switch i {
		case 0:
		case len(values) - 1:
			list.WriteString(" or ")
		default:
			list.WriteString(", ")
		}
		list.WriteString(string(value))
	}
	return list.String()
}

func requestID(id string) error {
	if id == "" {
		return fieldf("requestId", "empty")
	}
	return nil
}

// text checks that s is valid UTF-8. JSON guarantees it, Go callers do not.
func text(field, s string) error {
	if !utf8.ValidString(s) {
		return fieldf(field, "invalid UTF-8")
	}
	return nil
}

// value accepts any JSON without fields named like an API key.
func value(field string, raw json.RawMessage) error {
	if len(raw) > 0 && !json.Valid(raw) {
		return fieldf(field, "invalid JSON")
	}
	return RejectKeys(map[string]json.RawMessage{field: raw})
}

// ValidateName accepts names of 1 to [MaxNameBytes] bytes of UTF-8, not blank. It rejects control
// characters, because terminals print the names. Errors name the field.
func ValidateName(field, s string) error {
	if strings.TrimSpace(s) == "" {
		return fieldf(field, "empty")
	}
	if len(s) > MaxNameBytes || !utf8.ValidString(s) {
		return fieldf(field, "want at most %d bytes of UTF-8", MaxNameBytes)
	}
	if strings.ContainsFunc(s, isControl) {
		return fieldf(field, "has a control character (line breaks, C0, C1 and bidirectional controls are rejected)")
	}
	return nil
}

// isControl also matches line and paragraph separators, and bidirectional controls (UAX #9).
func isControl(r rune) bool {
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || unicode.Is(unicode.Bidi_Control, r)
}

func between(field string, got, low, high int64) error {
	if got < low || got > high {
		return &FieldError{Field: field, Problem: fmt.Sprintf("want %d to %d, got %d", low, high, got), Range: &Range{got, low, high}}
	}
	return nil
}

func milliseconds(n int64) string { return (time.Duration(n) * time.Millisecond).String() }
