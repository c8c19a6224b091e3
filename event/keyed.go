package event

import (
	"crypto/sha256"
	"encoding/base32"
	"strconv"
	"strings"
)

// keyedPrefix begins the ClientEventIDs that are made of an idempotency key. They have
// the form "idempotency-KEY-BODY-INDEX", where KEY and BODY are digests: an input that
// came with the same key has the same KEY, and the same BODY if it is the same input.
const keyedPrefix = "idempotency-"

// KeyReused is the reason of the [InputRejected] for an input that came with the
// idempotency key of another one.
const KeyReused = "the idempotency key was used for another input"

// KeyedIDs returns the ClientEventIDs of an input with an idempotency key, by the index of
// the event. The body is the JSON of the input.
func KeyedIDs(key string, body []byte) func(index int) string {
	prefix := keyedPrefix + digest([]byte(key)) + "-" + digest(body) + "-"
	return func(index int) string { return prefix + strconv.Itoa(index) }
}

// ReusesKey reports whether two ClientEventIDs are made of the same idempotency key, and
// of two inputs.
func ReusesKey(one, other string) bool {
	oneKey, oneBody := keyed(one)
	otherKey, otherBody := keyed(other)
	return oneKey != "" && oneKey == otherKey && oneBody != otherBody
}

// keyed returns the digests in a ClientEventID; empty ones if it has none.
func keyed(id string) (key, body string) {
	rest, ok := strings.CutPrefix(id, keyedPrefix)
	parts := strings.Split(rest, "-")
	if !ok || len(parts) != 3 {
		return "", ""
	}
	return parts[0], parts[1]
}

// digest identifies bytes in 32 characters.
func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return base32.StdEncoding.EncodeToString(sum[:20])
}
