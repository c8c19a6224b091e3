package agent

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
)

// maxSeen bounds the distinct lines counted, which take some tens of megabytes.
const maxSeen = 1 << 20

// identity assigns a unique, deterministic id to each line.
type identity struct {
	// seen counts occurrences by line hash. It is cleared at most entries, and
	// epoch counts how often.
	seen  map[uint64]int
	most  int
	epoch int
}

func newIdentity(most int) identity { return identity{seen: map[uint64]int{}, most: most} }

// of returns the id of the next occurrence of a line in an agent session.
func (i *identity) of(session string, line []byte) string {
	hash := sha256.New()
	fmt.Fprintf(hash, "%d %s\n", len(session), session)
	hash.Write(line)
	key := hash.Sum(nil)
	if len(i.seen) >= i.most {
		clear(i.seen)
		i.epoch++
	}
	short := binary.BigEndian.Uint64(key)
	i.seen[short]++
	name := sha256.Sum256(fmt.Appendf(key, " %d %d", i.epoch, i.seen[short]))
	return hex.EncodeToString(name[:16])
}
