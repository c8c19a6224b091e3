package blobs

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Ref is the name of bytes in the store: "sha256/" and their SHA-256 as 64 lower-case hex digits.
type Ref string

// ParseRef returns a reference, or an error if it is malformed.
func ParseRef(s string) (Ref, error) {
	digits, ok := strings.CutPrefix(s, event.BlobPrefix)
	sum, err := hex.DecodeString(digits)
	if !ok || err != nil || len(sum) != sha256.Size || digits != strings.ToLower(digits) {
		return "", fmt.Errorf("blob reference %q: want %s and 64 of 0-9 a-f", event.Redact(s, 80), event.BlobPrefix)
	}
	return Ref(s), nil
}

func (r *Ref) UnmarshalText(text []byte) (err error) {
	*r, err = ParseRef(string(text))
	return err
}

// RefOf returns the reference of bytes.
func RefOf(data []byte) Ref { return Ref(event.RefOf(data)) }
