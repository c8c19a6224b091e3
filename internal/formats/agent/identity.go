package agent

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
)

// maxSeen is the maximum number of distinct lines that are counted. They take some tens of
// megabytes.
const maxSeen = 1 << 20

type identity struct {
	// seen counts the occurrences of each line, by its hash. It is cleared when it has max
	// entries, and epoch counts how often that happened.
	seen  map[uint64]int
	max   int
	epoch int
}

func newIdentity(max int) identity { return identity{seen: map[uint64]int{}, max: max} }

// ofUUID returns the client event id of a line that has a uuid, and whether the uuid occurred before.
func (i *identity) ofUUID(uuid string) (id string, isRepeated bool) {
	sum := sha256.Sum256([]byte("uuid\n" + uuid))
	return hex.EncodeToString(sum[:16]), i.count(sum[:]) > 1
}

// of returns the client event id of the next occurrence of a line in an agent session.
func (i *identity) of(session string, line []byte) string {
	hash := sha256.New()
	fmt.Fprintf(hash, "%d %s\n", len(session), session)
	hash.Write(line)
	key := hash.Sum(nil)
	occurrence := i.count(key)
	name := sha256.Sum256(fmt.Appendf(key, " %d %d", i.epoch, occurrence))
	return hex.EncodeToString(name[:16])
}

func (i *identity) count(key []byte) int {
	if len(i.seen) >= i.max {
		clear(i.seen)
		i.epoch++
	}
	short := binary.BigEndian.Uint64(key)
	i.seen[short]++
	return i.seen[short]
}
