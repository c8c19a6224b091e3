package event

import (
	"crypto/sha256"
	"encoding/base32"
	"strconv"
	"strings"
)

// keyedPrefix begins the ids "idempotency-KEY-BODY-INDEX", where KEY and BODY are digests.
const keyedPrefix = "idempotency-"

// KeyReused is the reason of an [InputRejected]: an earlier, different input had the idempotency key.
const KeyReused = "the idempotency key was used for another input"

// KeyedIDs returns the ClientEventIDs of an input with an idempotency key, by the index of the event.
// The body is the JSON of the input.
func KeyedIDs(key string, body []byte) func(index int) string {
	prefix := keyedPrefix + digest([]byte(key)) + "-" + digest(body) + "-"
	return func(index int) string { return prefix + strconv.Itoa(index) }
}

// ReusesKey reports whether two ClientEventIDs have the same key and different inputs.
func ReusesKey(one, other string) bool {
	oneKey, oneBody := keyed(one)
	otherKey, otherBody := keyed(other)
	return oneKey != "" && oneKey == otherKey && oneBody != otherBody
}

func keyed(id string) (key, body string) {
	rest, ok := strings.CutPrefix(id, keyedPrefix)
	parts := strings.Split(rest, "-")
	if !ok || len(parts) != 3 {
		return "", ""
	}
	return parts[0], parts[1]
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return base32.StdEncoding.EncodeToString(sum[:20])
}
