package auth

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// SessionLifetime is the time from signing in to the end of a session.
const SessionLifetime = 12 * time.Hour

// session is the content of the cookie of a person who has signed in.
type session struct {
	Token    string    `json:"t,omitempty"` // the id of the static token that began it, which may be revoked; "": none
	Identity *Identity `json:"i,omitempty"` // without a token
	Expires  time.Time `json:"e"`
}

// seal encrypts and authenticates cookies and share links.
type seal struct{ aead cipher.AEAD }

// newSeal uses a random key if key is empty.
func newSeal(key []byte) (*seal, error) {
	if len(key) == 0 {
		key = make([]byte, 32)
		_, _ = rand.Read(key) // never fails
	} else if len(key) < 32 {
		return nil, fmt.Errorf("session key: %d bytes (want at least 32)", len(key))
	}
	sum := sha256.Sum256(key)
	block, err := aes.NewCipher(sum[:])
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	return &seal{aead}, err
}

// A cookie name with this prefix is only accepted by browsers from the host itself over TLS, not from its subdomains.
const hostPrefix = "__Host-"

const (
	sessionCookie = "chronicle-session"
	loginCookie   = "chronicle-login"
)

func cookieName(r *http.Request, name string) string {
	if isSecure(r) {
		return hostPrefix + name
	}
	return name
}

// isSecure reports whether the browser uses TLS. A client that forges the header harms only its own cookie.
func isSecure(r *http.Request) bool {
	return r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https"
}

// set sets a cookie to a sealed value.
func (s *seal) set(w http.ResponseWriter, r *http.Request, name string, value any, lifetime time.Duration) {
	s.setCookie(w, r, name, s.encode(name, value), lifetime)
}

// encode seals a value, which is bound to a purpose.
func (s *seal) encode(purpose string, value any) string {
	content, _ := json.Marshal(value) // texts and times
	return base64.RawURLEncoding.EncodeToString(s.aead.Seal(nil, nil, content, []byte(purpose)))
}

// decode reports whether a text is valid for a purpose.
func (s *seal) decode(purpose, text string, value any) bool {
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return false
	}
	content, err := s.aead.Open(nil, nil, sealed, []byte(purpose))
	return err == nil && json.Unmarshal(content, value) == nil
}

func (s *seal) clear(w http.ResponseWriter, r *http.Request, name string) {
	s.setCookie(w, r, name, "", -time.Second)
}

func (*seal) setCookie(w http.ResponseWriter, r *http.Request, name, value string, lifetime time.Duration) {
	http.SetCookie(w, &http.Cookie{
		Name: cookieName(r, name), Value: value, Path: "/", MaxAge: int(lifetime.Seconds()),
		HttpOnly: true, Secure: isSecure(r), SameSite: http.SameSiteLaxMode, // Lax, since the provider redirects back to the gateway
	})
}

// get reports whether the request has a valid cookie, which it decodes into value.
func (s *seal) get(r *http.Request, name string, value any) bool {
	cookie, err := r.Cookie(cookieName(r, name))
	return err == nil && s.decode(name, cookie.Value, value)
}
