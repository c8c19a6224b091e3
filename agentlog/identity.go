package agentlog

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
)

// maxSeen is how many lines are told apart by how often they came. It bounds the
// memory at some tens of megabytes.
const maxSeen = 1 << 20

// identity names lines, each time another way.
type identity struct {
	// seen counts how often a line came, by a hash of it. When there are as many as
	// most, it begins anew, and epoch counts how often it did.
	seen  map[uint64]int
	most  int
	epoch int
}

func newIdentity(most int) identity { return identity{seen: map[uint64]int{}, most: most} }

// of is the name of a line in a session of the agent.
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
