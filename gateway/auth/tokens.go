package auth

import (
	"fmt"
	"log/slog"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/internal/reload"
)

// Tokens are the static tokens of a file, which is read again when it changes.
type Tokens struct {
	records *reload.Value[map[string]Token] // by id
	log     *slog.Logger
}

// OpenTokens returns the tokens of a file, which need not exist. Malformed lines are ignored and logged.
func OpenTokens(file TokenFile, log *slog.Logger) *Tokens {
	logged := ""
	parse := func(contents [][]byte) (map[string]Token, error) {
		tokens, err := parseTokens(contents[0])
		if err != nil && err.Error() != logged {
			logged = err.Error()
			log.Error("malformed lines of the tokens are ignored", "file", file, "error", logged)
		}
		records := map[string]Token{}
		for _, token := range tokens {
			records[token.ID] = token
		}
		return records, nil
	}
	return &Tokens{reload.New(parse, string(file)), log}
}

// verify returns the record of a valid token.
func (t *Tokens) verify(token string) (Token, error) {
	id, _, _ := strings.Cut(strings.TrimPrefix(token, TokenPrefix), "_")
	record := t.find(id)
	if !record.is(token) {
		return Token{}, errUnknownToken
	}
	return record, record.checkExpiry()
}

// record returns the token with an id, unless it was revoked or has expired.
func (t *Tokens) record(id string) (Token, error) {
	record := t.find(id)
	if record.ID == "" {
		return Token{}, errUnknownToken
	}
	return record, record.checkExpiry()
}

// find returns the zero Token if there is none with the id.
func (t *Tokens) find(id string) Token {
	records, err := t.records.Get()
	if err != nil {
		t.log.Error("the tokens were not read again and stay as they were", "error", err)
	}
	return records[id]
}

func (t Token) checkExpiry() error {
	if t.IsExpired() {
		return fmt.Errorf("%w: expired token", ErrUnauthenticated)
	}
	return nil
}

var errUnknownToken = fmt.Errorf("%w: unknown or revoked token", ErrUnauthenticated)
