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

// Removed replaces secrets removed by [Redact].
const Removed = "[removed]"

// RefuseKeys returns a [*FieldError] for a field named like an API key, at any depth.
func RefuseKeys(fields map[string]json.RawMessage) error {
	for _, name := range sortedNames(fields) {
		var value any
		if raw := fields[name]; len(raw) > 0 && (raw[0] == '{' || raw[0] == '[') {
			var err error
			if value, err = parse(raw); err != nil {
				return fieldf(name, "invalid JSON")
			}
		}
		if found := findKey(name, value); found != "" {
			return fieldf(found, "a raw key is not allowed (use apiKeyRef, such as env:OPENAI_API_KEY)")
		}
	}
	return nil
}

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

// isKeyName matches apiKey, X-API-Key, OPENAI_API_KEY and the like, but not apiKeyRef.
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
	// A name, a colon or equals sign, and a value of at least two characters, so that the error of
	// RefuseKeys stays intact. An object or array is removed to the end of the text, because a
	// regular expression cannot find its end.
	namedSecret = regexp.MustCompile(`(?i)((?:api[_. -]?keys?|secret|(?:secret|private|access)[_-]?(?:access[_-]?)?key|password|passwd|passphrase|authorization|(?:access|auth|refresh|session|bearer)[_-]?token)\\?["']?\s*[:=]\s*)(\[removed\]|[{\[](?s:.*)|\\?"(?:[^"\\]|\\.)*\\?"?|'[^']*'?|(?:(?:bearer|basic|token|digest|apikey)\s+)?[^\s,;&"'}\]]{2,})`)
	bearer      = regexp.MustCompile(`(?i)` + boundary + `(bearer|basic)\s+[A-Za-z0-9._~+/=*-]{6,}`)
	userInfo    = regexp.MustCompile(`(?i)\b([a-z][a-z0-9+.-]*://)[^\s/"']+@`)
	knownShape  = regexp.MustCompile(boundary + `(?:` +
		`(?:` + strings.Join(keyPrefixes, "|") + `)[-_][A-Za-z0-9_*-]{8,}|` +
		`AIza[A-Za-z0-9_-]{20,}|` +
		`A[KS]IA[A-Z0-9]{12,}|` +
		`eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*)`)
	// An assignment in a shell or settings file, unless the value is another variable ($NAME).
	variable   = regexp.MustCompile(`(?m)^(\s*(?:export\s+)?[A-Z][A-Z0-9_]*(?:KEY|SECRET|TOKEN|PASSWORD)=["']?)[^\s"'$\[]{6,}`)
	privateKey = regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z ]*PRIVATE KEY-----|$)`)
)

var keyPrefixes = []string{
	"sk", "pk", "rk", "gsk", "csk", "xai", "hf", "pplx", "r8", "ghp", "gho", "ghu", "ghs", "ghr", "github_pat", "glpat",
	"nvapi", "whsec", "xoxa", "xoxb", "xoxe", "xoxp", "xoxr", "xoxs",
}

// boundary is the start of a word. For \b, the n of an escaped newline is part of the word.
const boundary = `(\\[nrtbf]|\\u[0-9a-fA-F]{4}|[^A-Za-z0-9]|^)`

// Redact replaces secrets by [Removed] and truncates to max bytes; 0 means no limit. It recognizes
// secrets by the name before them (apiKey, password), by their format (sk-…, Bearer …, PEM private
// keys) and as user info in a URL.
func Redact(text string, max int) string {
	if !utf8.ValidString(text) {
		return fmt.Sprintf("(%d bytes of invalid UTF-8)", len(text))
	}
	size := len(text)
	// The window has room for a secret across the end; its bound keeps the search fast.
	if window := 8*max + 4096; max > 0 && size > window {
		text = strings.ToValidUTF8(text[:window], "")
	}
	text = namedSecret.ReplaceAllString(text, `${1}`+Removed)
	text = redactShapes(text)
	if max > 0 && len(text) > max {
		text = fmt.Sprintf("%s… (%d bytes in total)", strings.ToValidUTF8(text[:max], ""), size)
	}
	return text
}

// redactShapes looks for prefixes first, a hundred times faster than the regular expressions.
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

func mayHaveKey(text string) bool {
	isIn := func(prefix string) bool { return strings.Contains(text, prefix) }
	return slices.ContainsFunc(keyPrefixes, func(p string) bool { return isIn(p+"-") || isIn(p+"_") }) ||
		slices.ContainsFunc([]string{"AIza", "AKIA", "ASIA", "eyJ"}, isIn)
}

// RedactJSON makes JSON valid in an event: it drops the values of fields named like an API key and
// renames them. In strings, it removes known key formats and values of variables like
// OPENAI_API_KEY. It keeps the text after other names, which occur in source code.
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
		for _, name := range slices.Sorted(maps.Keys(value)) {
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

func shortURL(raw string) string {
	if strings.HasPrefix(raw, "data:") {
		if head, _, ok := strings.Cut(raw, ","); ok {
			return head + ",…"
		}
	}
	return raw
}

// MaxRejectedInput is the maximum length of the input in an [InputRejected], in bytes.
const MaxRejectedInput = 500

// RedactEvents returns the JSON of events for an [InputRejected].
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
