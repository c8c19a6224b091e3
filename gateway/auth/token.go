package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"strings"
	"time"
)

// TokenPrefix begins every token, so that scanners for secrets recognize it. Package event redacts it.
const TokenPrefix = "chr_"

// Token is the record of a token, which does not contain the token.
type Token struct {
	ID      string     `json:"id"`   // public, and a part of the token
	Hash    string     `json:"hash"` // SHA-256 of the token in hexadecimal
	Subject string     `json:"subject"`
	Tenant  string     `json:"tenant,omitempty"`
	Roles   []Role     `json:"roles"`
	Created time.Time  `json:"created"`
	Expires *time.Time `json:"expires,omitempty"` // nil: never
}

// newToken returns a token of 260 random bits. A slow hash would add nothing to them.
func newToken() (id, token string) {
	id = strings.ToLower(rand.Text()[:8])
	return id, TokenPrefix + id + "_" + rand.Text() + rand.Text()
}

func hashOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

func (t Token) is(token string) bool {
	return subtle.ConstantTimeCompare([]byte(hashOf(token)), []byte(t.Hash)) == 1
}

// IsExpired reports whether the token has expired.
func (t Token) IsExpired() bool { return t.Expires != nil && !time.Now().Before(*t.Expires) }
