package mcp

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/secretref"
)

const minScrubbed = 6 // bytes; shorter secrets would remove parts of ordinary words

// secrets resolves references to secrets, and removes those secrets from texts.
type secrets struct {
	getenv   func(string) string
	values   []string
	replacer *strings.Replacer
}

// environment returns PATH, HOME and what the server's config contains.
func (s *secrets) environment(env map[string]string) ([]string, error) {
	merged := map[string]string{}
	for _, name := range []string{"PATH", "HOME"} {
		if value := s.getenv(name); value != "" {
			merged[name] = value
		}
	}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		value := env[name]
		if secretref.IsRef(value) {
			var err error
			if value, err = s.resolve(value); err != nil {
				return nil, fmt.Errorf("env %s: %w", name, err)
			}
		}
		merged[name] = value
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(merged)) {
		out = append(out, name+"="+merged[name])
	}
	return out, nil
}

func (s *secrets) headers(headers map[string]string) (http.Header, error) {
	out := http.Header{}
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		value := headers[name]
		if before, last := cutLastWord(value); secretref.IsRef(last) {
			secret, err := s.resolve(last)
			if err != nil {
				return nil, fmt.Errorf("header %s: %w", name, err)
			}
			if strings.ContainsFunc(secret, func(r rune) bool { return r < ' ' || r > '~' }) {
				return nil, fmt.Errorf("header %s: the content of %s has a line break or a character beyond ASCII", name, last)
			}
			value = before + secret
		}
		out.Set(name, value)
	}
	return out, nil
}

// resolve returns what a reference refers to, without white space at the ends.
func (s *secrets) resolve(ref string) (string, error) {
	text, err := secretref.Read(ref, s.getenv, nil)
	if err != nil {
		return "", err
	}
	if strings.Contains(text, "\x00") {
		return "", fmt.Errorf("the content of %s has a NUL character", ref)
	}
	if len(text) >= minScrubbed {
		s.values = append(s.values, text)
		// The longest first, since one secret may contain another.
		slices.SortFunc(s.values, func(a, b string) int { return len(b) - len(a) })
		var pairs []string
		for _, value := range s.values {
			pairs = append(pairs, value, event.Removed)
		}
		s.replacer = strings.NewReplacer(pairs...)
	}
	return text, nil
}

func (s *secrets) scrub(text string) string {
	if s.replacer == nil {
		return text
	}
	return s.replacer.Replace(text)
}

func (s *secrets) scrubAll(value any) any {
	if s.replacer == nil {
		return value
	}
	return mapStrings(value, s.replacer.Replace)
}

// mapStrings applies f to the strings and field names of a decoded JSON value, and to the digits of
// its numbers. A number that f changes becomes a string.
func mapStrings(value any, f func(string) string) any {
	switch value := value.(type) {
	case string:
		return f(value)
	case float64, json.Number:
		if digits, err := json.Marshal(value); err == nil && f(string(digits)) != string(digits) {
			return f(string(digits))
		}
	case []any:
		out := make([]any, len(value))
		for i, element := range value {
			out[i] = mapStrings(element, f)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(value))
		for name, field := range value {
			out[f(name)] = mapStrings(field, f)
		}
		return out
	}
	return value
}
