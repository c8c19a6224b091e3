package event

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Removed stands where [Redact] took a secret out.
const Removed = "[removed]"

// refuseKeys refuses a raw API key in the fields that a body does not know,
// at any depth. It is what keeps "apiKey" out of every history.
func refuseKeys(fields map[string]json.RawMessage) error {
	for _, name := range sortedNames(fields) {
		if found := findKey(name, fields[name]); found != "" {
			return fieldf(found, "a raw key must not enter a context; give apiKeyRef, like env:OPENAI_API_KEY")
		}
	}
	return nil
}

// findKey returns the dotted name of a field that is named like an API key.
func findKey(name string, raw json.RawMessage) string {
	if isKeyName(name) {
		return name
	}
	if len(raw) == 0 || raw[0] != '{' && raw[0] != '[' {
		return ""
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) == nil {
		for _, inner := range sortedNames(object) {
			if found := findKey(inner, object[inner]); found != "" {
				return name + "." + found
			}
		}
		return ""
	}
	var array []json.RawMessage
	if json.Unmarshal(raw, &array) == nil {
		for i, value := range array {
			if found := findKey(fmt.Sprint(i), value); found != "" {
				return name + "." + found
			}
		}
	}
	return ""
}

func isKeyName(name string) bool {
	switch strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(name)) {
	case "apikey", "xapikey":
		return true
	}
	return false
}

var (
	// A quoted or bare name that ends like the name of a secret, a colon or an
	// equals sign, and the value: `"apiKey": "…"`, `password=…`.
	namedSecret = regexp.MustCompile(`(?i)((?:api[_-]?key|secret|password|passwd|authorization|access[_-]?token|auth[_-]?token)\\?["']?\s*[:=]\s*)(\\?"(?:[^"\\]|\\.)*\\?"?|'[^']*'?|(?:bearer\s+|basic\s+)?[^\s,;&"'}\]]+)`)
	bearer      = regexp.MustCompile(`(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=*-]{6,}`)
	userInfo    = regexp.MustCompile(`(?i)\b([a-z][a-z0-9+.-]*://)[^\s/@"']+@`)
	// The shapes in which the well-known providers hand out keys.
	knownShape = regexp.MustCompile(`\b(?:sk|pk|rk|gsk|csk|xai|hf|pplx|ghp|gho|github_pat|glpat|xox[abprs])[-_][A-Za-z0-9_*-]{8,}|\bAIza[A-Za-z0-9_-]{20,}|\bAKIA[A-Z0-9]{12,}|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`)
)

// Redact returns a text fit for a log: what looks like a secret is replaced by
// [Removed], what is not UTF-8 is only described, and what is longer than max
// bytes is cut. Zero or less means no limit.
//
// It recognises secrets by the name they stand behind (apiKey, password,
// authorization, …), by their shape (sk-…, Bearer …, AIza…, …), and in the
// user part of a URL.
func Redact(text string, max int) string {
	if !utf8.ValidString(text) {
		return fmt.Sprintf("(%d bytes that are not UTF-8)", len(text))
	}
	size := len(text)
	// Far more than is kept, so that no secret straddles the end, and far less
	// than would make the search slow.
	if window := 8*max + 4096; max > 0 && size > window {
		text = strings.ToValidUTF8(text[:window], "")
	}
	text = namedSecret.ReplaceAllString(text, `${1}`+Removed)
	text = bearer.ReplaceAllString(text, `${1} `+Removed)
	text = userInfo.ReplaceAllString(text, `${1}`+Removed+`@`)
	text = knownShape.ReplaceAllString(text, Removed)
	if max > 0 && len(text) > max {
		text = fmt.Sprintf("%s… (%d bytes in all)", strings.ToValidUTF8(text[:max], ""), size)
	}
	return text
}

// shortURL drops the payload of a data URL.
func shortURL(raw string) string {
	if strings.HasPrefix(raw, "data:") {
		if head, _, ok := strings.Cut(raw, ","); ok {
			return head + ",…"
		}
	}
	return raw
}

// MaxRejectedInput is how much of an input an [InputRejected] keeps, in bytes.
const MaxRejectedInput = 500

// RedactEvents is the JSON of events, fit for an [InputRejected].
func RedactEvents(events []Event) string {
	var text []byte
	var err error
	if len(events) == 1 {
		text, err = json.Marshal(events[0])
	} else {
		text, err = json.Marshal(events)
	}
	if err != nil {
		return fmt.Sprintf("(%d events)", len(events))
	}
	return Redact(string(text), MaxRejectedInput)
}
