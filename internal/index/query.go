package index

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Bounds of a query. They bound its cost.
const (
	MaxQuery   = 400 // bytes
	maxTerms   = 24
	minPrefix  = 2   // characters of a word that may have any ending
	maxEndings = 200 // words that one with any ending stands for: the most frequent ones
	maxScanned = 20_000
)

// ErrQuery is the error of an invalid query.
var ErrQuery = errors.New("invalid query")

// clause is a sequence of words that a message must contain.
type clause struct {
	terms    []string
	isPrefix bool // the last one may have any ending
}

// parseQuery reads a query: words, which a message must all contain, and phrases in quotes. The last word may have any
// ending if nothing follows it, so that results appear while somebody types.
func parseQuery(text string) (clauses []clause, err error) {
	if len(text) > MaxQuery {
		return nil, fmt.Errorf("%w: %d bytes (at most %d)", ErrQuery, len(text), MaxQuery)
	}
	if !utf8.ValidString(text) {
		return nil, fmt.Errorf("%w: not UTF-8", ErrQuery)
	}
	add := func(part string, isPrefix bool) {
		var c clause
		var last word
		for last = range words(part) {
			c.terms = append(c.terms, last.term)
		}
		if len(c.terms) == 0 {
			return
		}
		c.isPrefix = isPrefix && last.end == len(part) && utf8.RuneCountInString(last.term) >= minPrefix
		if !slices.ContainsFunc(clauses, func(other clause) bool { return slices.Equal(other.terms, c.terms) && other.isPrefix == c.isPrefix }) {
			clauses = append(clauses, c)
		}
	}
	for i, part := range strings.Split(text, `"`) {
		if i%2 == 1 {
			add(part, false)
			continue
		}
		fields := strings.Fields(part)
		for j, field := range fields {
			add(field, j == len(fields)-1 && strings.HasSuffix(text, field))
		}
	}
	count := 0
	for _, c := range clauses {
		count += len(c.terms)
	}
	switch {
	case len(clauses) == 0:
		return nil, fmt.Errorf("%w: it has no word (want words, or a phrase in quotes)", ErrQuery)
	case count > maxTerms:
		return nil, fmt.Errorf("%w: %d words (at most %d)", ErrQuery, count, maxTerms)
	}
	return clauses, nil
}

// matches reports whether a clause matches at the first of some words.
func (c clause) matches(at []word) bool {
	if len(at) < len(c.terms) {
		return false
	}
	for i, term := range c.terms {
		isEnd := i == len(c.terms)-1
		if at[i].term != term && !(isEnd && c.isPrefix && strings.HasPrefix(at[i].term, term)) {
			return false
		}
	}
	return true
}

// CheckQuery returns ErrQuery for an invalid query.
func CheckQuery(text string) error {
	_, err := parseQuery(text)
	return err
}
