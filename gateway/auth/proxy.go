package auth

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net/http"
	"strings"
)

// SecretHeader is the header by which a trusted proxy proves itself.
const SecretHeader = "X-Chronicle-Proxy-Secret"

// Proxy trusts the headers of a proxy that knows a secret. The proxy must set or remove each header of the mapping:
// those that it passes on are its client's.
type Proxy struct {
	Secret  string // at least 16 bytes
	Mapping Mapping
}

// ProxyMapping has the headers of oauth2-proxy. Roles are separated by commas.
var ProxyMapping = Mapping{Subject: "X-Forwarded-User", Roles: "X-Forwarded-Groups"}

func (p *Proxy) authenticate(r *http.Request) (Identity, error) {
	secrets := r.Header.Values(SecretHeader)
	if len(secrets) != 1 || !isEqual(secrets[0], p.Secret) {
		return Identity{}, fmt.Errorf("%w: wrong %s", ErrUnauthenticated, SecretHeader)
	}
	identity, err := p.Mapping.identity(func(name string) []string {
		values := r.Header.Values(name)
		if name != p.Mapping.Roles {
			return values
		}
		var roles []string
		for role := range strings.SplitSeq(strings.Join(values, ","), ",") {
			roles = append(roles, strings.TrimSpace(role))
		}
		return roles
	})
	if err != nil {
		return Identity{}, fmt.Errorf("%w: header %w", ErrUnauthenticated, err)
	}
	return identity, nil
}

// isEqual compares secrets of any length in constant time.
func isEqual(a, b string) bool {
	sumA, sumB := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(sumA[:], sumB[:]) == 1
}
