package event

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Removed stands where [Redact] took a secret out.
const Removed = "[removed]"

// RefuseKeys refuses a raw API key in fields of JSON, at any depth, with a
// [*FieldError]. It is what keeps "apiKey" out of every history.
func RefuseKeys(fields map[string]json.RawMessage) error {
	for _, name := range sortedNames(fields) {
		var value any
		// The rest are strings and the like, which hold no field.
		if raw := fields[name]; len(raw) > 0 && (raw[0] == '{' || raw[0] == '[') {
			var err error
			if value, err = parse(raw); err != nil {
				return fieldf(name, "is not JSON")
			}
		}
		if found := findKey(name, value); found != "" {
			return fieldf(found, "a raw key must not enter a context; give apiKeyRef, like env:OPENAI_API_KEY")
		}
	}
	return nil
}

// findKey returns the dotted name of a field that is named like an API key.
func findKey(name string, value any) string {
	if isKeyName(name) {
		return name
	}
	switch value := value.(type) {
	case map[string]any:
		for _, inner := range slices.Sorted(maps.Keys(value)) {
			if found := findKey(inner, value[inner]); found != "" {
				return name + "." + found
			}
		}
	case []any:
		for i, inner := range value {
			if found := findKey(strconv.Itoa(i), inner); found != "" {
				return name + "." + found
			}
		}
	}
	return ""
}

// isKeyName takes apiKey, api_key, X-API-Key, OPENAI_API_KEY and their like for
// the name of a raw key; apiKeyRef is none.
func isKeyName(name string) bool {
	letters := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, name)
	return strings.HasSuffix(letters, "apikey") || strings.HasSuffix(letters, "apikeys")
}

var (
	// A quoted or bare name that ends like the name of a secret, a colon or an
	// equals sign, and the value: `"apiKey": "…"`, `password=…`. Where the value
	// is an object or an array, all that follows goes: it has no plain end. A
	// single character without quotes is no secret but a word, as in the error of
	// RefuseKeys.
	namedSecret = regexp.MustCompile(`(?i)((?:api[_. -]?keys?|secret|(?:secret|private|access)[_-]?(?:access[_-]?)?key|password|passwd|passphrase|authorization|(?:access|auth|refresh|session|bearer)[_-]?token)\\?["']?\s*[:=]\s*)(\[removed\]|[{\[](?s:.*)|\\?"(?:[^"\\]|\\.)*\\?"?|'[^']*'?|(?:(?:bearer|basic|token|digest|apikey)\s+)?[^\s,;&"'}\]]{2,})`)
	bearer      = regexp.MustCompile(`(?i)` + boundary + `(bearer|basic)\s+[A-Za-z0-9._~+/=*-]{6,}`)
	userInfo    = regexp.MustCompile(`(?i)\b([a-z][a-z0-9+.-]*://)[^\s/"']+@`)
	// The shapes in which the well-known providers hand out keys.
	knownShape = regexp.MustCompile(boundary + `(?:` +
		`(?:` + strings.Join(keyPrefixes, "|") + `)[-_][A-Za-z0-9_*-]{8,}|` +
		`AIza[A-Za-z0-9_-]{20,}|` +
		`A[KS]IA[A-Z0-9]{12,}|` +
		`eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*)`)
	// A line that sets a variable, as a shell or a file of settings has it. One
	// that is set to another, $NAME, has no secret in it.
	variable   = regexp.MustCompile(`(?m)^(\s*(?:export\s+)?[A-Z][A-Z0-9_]*(?:KEY|SECRET|TOKEN|PASSWORD)=["']?)[^\s"'$\[]{6,}`)
	privateKey = regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z ]*PRIVATE KEY-----|$)`)
)

// keyPrefixes stand in front of keys, with a dash or an underscore behind them.
var keyPrefixes = []string{
	"sk", "pk", "rk", "gsk", "csk", "xai", "hf", "pplx", "r8", "ghp", "gho", "ghu", "ghs", "ghr", "github_pat", "glpat",
	"nvapi", "whsec", "xoxa", "xoxb", "xoxe", "xoxp", "xoxr", "xoxs",
}

// boundary is where a word begins. A plain \b is not enough: in JSON a new line
// before a key is written as \n, and the n would be part of the word.
const boundary = `(\\[nrtbf]|\\u[0-9a-fA-F]{4}|[^A-Za-z0-9]|^)`

// Redact returns a text fit for a log: what looks like a secret is replaced by
// [Removed], what is not UTF-8 is only described, and what is longer than max
// bytes is cut. Zero or less means no limit.
//
// It recognises secrets by the name they stand behind (apiKey, password,
// authorization, …), by their shape (sk-…, Bearer …, AIza…, a private key in
// PEM, …), and in the user part of a URL.
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
	text = redactShapes(text)
	if max > 0 && len(text) > max {
		text = fmt.Sprintf("%s… (%d bytes in all)", strings.ToValidUTF8(text[:max], ""), size)
	}
	return text
}

// redactShapes replaces what is a secret by its looks. To look whether a text has
// any of what a secret begins with takes a hundredth of the time of the search.
func redactShapes(text string) string {
	if lower := strings.ToLower(text); strings.Contains(lower, "bearer") || strings.Contains(lower, "basic") {
		text = bearer.ReplaceAllString(text, `${1}${2} `+Removed)
	}
	if strings.Contains(text, "://") && strings.Contains(text, "@") {
		text = userInfo.ReplaceAllString(text, `${1}`+Removed+`@`)
	}
	if strings.Contains(text, "PRIVATE KEY") {
		text = privateKey.ReplaceAllString(text, Removed)
	}
	if mayHaveKey(text) {
		text = knownShape.ReplaceAllString(text, `${1}`+Removed)
	}
	return text
}

// mayHaveKey reports whether a text has the beginning of a key, or of a word that
// ends like one.
func mayHaveKey(text string) bool {
	isIn := func(prefix string) bool { return strings.Contains(text, prefix) }
	return slices.ContainsFunc(keyPrefixes, func(p string) bool { return isIn(p+"-") || isIn(p+"_") }) ||
		slices.ContainsFunc([]string{"AIza", "AKIA", "ASIA", "eyJ"}, isIn)
}

// RedactJSON returns a JSON value as an event can hold it, see [RefuseKeys]. A
// field that is named like an API key loses its value, and its name is marked;
// in strings, what has the shape of a secret and what is assigned to a variable
// like OPENAI_API_KEY is replaced by [Removed].
//
// Unlike [Redact] it takes nothing else for a secret because of the word that it
// stands behind: in source code such words stand in front of anything.
func RedactJSON(raw json.RawMessage) (json.RawMessage, error) {
	if !json.Valid(raw) {
		return nil, &FieldError{Problem: "want JSON, got " + describe(raw)}
	}
	value, err := parse(raw)
	if err != nil {
		return nil, err
	}
	return encode(redactValue(value))
}

func redactValue(value any) any {
	switch value := value.(type) {
	case string:
		if strings.Contains(value, "=") {
			value = variable.ReplaceAllString(value, `${1}`+Removed)
		}
		return redactShapes(value)
	case map[string]any:
		for _, name := range slices.Collect(maps.Keys(value)) {
			if isKeyName(name) {
				delete(value, name)
				value[name+" "+Removed] = nil
				continue
			}
			value[name] = redactValue(value[name])
		}
	case []any:
		for i := range value {
			value[i] = redactValue(value[i])
		}
	}
	return value
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
