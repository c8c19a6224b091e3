package archive

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
)

// Claim is the choice of a name by a request with an idempotency key, which precedes the registration of the fork.
type Claim struct {
	Version     int    `json:"version"`
	ContextName string `json:"contextName"` // of the fork
	Request     string `json:"request"`     // a digest
}

// ClaimName returns the name of the object with a claim of an idempotency key, which identifies a request to fork a context.
// Claims of a key are numbered from 1: there is a next one if another fork was registered with the name that the claim chose.
func ClaimName(contextName, key string, number int) string {
	sum := sha256.Sum256([]byte(key))
	return fmt.Sprintf("%s%s%s-%d.json", folderOf(forks, contextName), claims, hex.EncodeToString(sum[:20]), number)
}

// claims is the folder of claims below the list of forks.
const claims = "keys/"

// ClaimFork stores a claim under a name, and returns it, or the one that is already stored.
func (a *Archive) ClaimFork(ctx context.Context, name string, claim Claim) (Claim, error) {
	claim.Version = version
	data, err := json.Marshal(claim)
	if err == nil {
		err = a.store.WriteOnce(ctx, name, data)
	}
	if errors.Is(err, blobs.ErrExists) {
		err = a.readEntry(ctx, name, &claim)
	}
	if err != nil {
		return claim, fmt.Errorf("claim a name for a fork: %w", err)
	}
	return claim, nil
}
