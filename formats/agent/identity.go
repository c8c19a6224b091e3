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

// of returns the client event id of the next occurrence of a line in an agent session.
func (i *identity) of(session string, line []byte) string {
	hash := sha256.New()
	fmt.Fprintf(hash, "%d %s\n", len(session), session)
	hash.Write(line)
	key := hash.Sum(nil)
	if len(i.seen) >= i.max {
		clear(i.seen)
		i.epoch++
	}
	short := binary.BigEndian.Uint64(key)
	i.seen[short]++
	name := sha256.Sum256(fmt.Appendf(key, " %d %d", i.epoch, i.seen[short]))
	return hex.EncodeToString(name[:16])
}
