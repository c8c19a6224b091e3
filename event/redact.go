package event

import (
	"encoding/base64"
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

// RejectKeys returns a [*FieldError] for a field named like an API key, at any depth.
func RejectKeys(fields map[string]json.RawMessage) error {
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
	// A name, a colon or equals sign, and a value. An unquoted value has at least two characters, so that
	// the error of RejectKeys ("apiKey: a raw key …") does not match. From an object or array on, all text
	// is removed, because a regular expression cannot find its end.
	namedSecret = regexp.MustCompile(`(?i)((?:api[_. -]?keys?|secret|(?:secret|private|access)[_-]?(?:access[_-]?)?key|password|passwd|passphrase|authorization|(?:access|auth|refresh|session|bearer)[_-]?token)\\?["']?\s*[:=]\s*)(\[removed\]|[{\[](?s:.*)|\\?"(?:[^"\\]|\\.)*\\?"?|'[^']*'?|(?:(?:bearer|basic|token|digest|apikey)\s+)?[^\s,;&"'}\]]{2,})`)
	// word matches a value that may be part of a sentence: "open conf/password: permission denied".
	word       = regexp.MustCompile(`^[a-z]+$`)
	authScheme = regexp.MustCompile(`(?i)` + boundary + `(bearer|basic)\s+([A-Za-z0-9._~+/=*-]{6,})`)
	userInfo   = regexp.MustCompile(`(?i)\b([a-z][a-z0-9+.-]*://)[^\s/"']+@`)
	knownShape = regexp.MustCompile(boundary + `(` +
		`(?:` + strings.Join(keyPrefixes, "|") + `)[-_][A-Za-z0-9_*-]{8,}|` +
		`AIza[A-Za-z0-9_-]{20,}|` +
		`A[KS]IA[A-Z0-9]{12,}|` +
		`chr_[a-z2-7]{8}_[A-Z2-7]{8,}|chs_[A-Za-z0-9_-]{20,}|` + // tokens and share links of the gateway
		`eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*)`)
	// A secret assigned without spaces, as in shells, URLs and connection strings.
	assignment = regexp.MustCompile(`(?i)((?:password|passwd|pwd|passphrase|secret|api[_-]?key|(?:secret|private|access)[_-]?(?:access[_-]?)?key|(?:access|auth|refresh|session|bearer)[_-]?token)=["']?)([^\s"'&;\\]{7,})`)
	assigned   = regexp.MustCompile(`^[A-Za-z0-9_+=!@#%^*~-][A-Za-z0-9_+=!@#%^*~/-]*$`)
	// An assignment in a shell or settings file, unless the value is another variable ($NAME).
	variable   = regexp.MustCompile(`(?m)^(\s*(?:export\s+)?[A-Z][A-Z0-9_]*(?:KEY|SECRET|TOKEN|PASSWORD)=["']?)[^\s"'$\[]{6,}`)
	privateKey = regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z ]*PRIVATE KEY-----|$)`)
)

var keyPrefixes = []string{
	"sk", "pk", "rk", "gsk", "csk", "xai", "hf", "pplx", "r8", "ghp", "gho", "ghu", "ghs", "ghr", "github_pat", "glpat",
	"nvapi", "whsec", "xoxa", "xoxb", "xoxe", "xoxp", "xoxr", "xoxs",
}

// boundary is the start of a word, also after an escaped newline, whose n would be a letter for \b.
const boundary = `(\\[nrtbf]|\\u[0-9a-fA-F]{4}|[^A-Za-z0-9]|^)`

// Redact replaces secrets by [Removed] and truncates the text to max bytes (0: no limit), followed by a
// note of its size. It recognizes secrets by the name before them (apiKey, password), by their format (sk-…,
// Bearer …, PEM private keys) and as user info in a URL.
//
// Activities and clients redact what they pass on. Workflows redact what enters in them: signals and errors of activities.
// A replay compares the ids and types of events with the recorded ones, not their texts. A change must keep the bound max,
// because the size of events decides how they are divided among markers.
func Redact(text string, max int) string {
	return redact(text, max, func(text string) string {
		if mayNameSecret(text) {
			text = namedSecret.ReplaceAllString(text, `${1}`+Removed)
		}
		return redactShapes(text, false)
	})
}

// mayNameSecret looks for the colon or equals sign that namedSecret requires, and is faster than namedSecret.
func mayNameSecret(text string) bool { return strings.ContainsAny(text, ":=") }

// RedactOutput is a more precise [Redact], for use outside workflows. It keeps path errors ("open
// conf/password: permission denied"), and words that follow the prefix of a key (sk-learn-tutorial) or the name
// of a scheme (basic authentication).
func RedactOutput(text string, max int) string {
	return redact(text, max, func(text string) string { return redactShapes(redactNamed(text), true) })
}

func redact(text string, max int, remove func(string) string) string {
	if !utf8.ValidString(text) {
		return fmt.Sprintf("(%d bytes of invalid UTF-8)", len(text))
	}
	size := len(text)
	// The window leaves room for a secret that crosses the end of the result, and bounds the search.
	if window := 8*max + 4096; max > 0 && size > window {
		text = strings.ToValidUTF8(text[:window], "")
	}
	return truncate(remove(text), max, size)
}

// Truncate truncates a text to max bytes, followed by a note of its size. Workflows use it for texts that activities redacted.
func Truncate(text string, max int) string { return truncate(text, max, len(text)) }

func truncate(text string, max, size int) string {
	if max > 0 && len(text) > max {
		return fmt.Sprintf("%s… (%d bytes in total)", strings.ToValidUTF8(text[:max], ""), size)
	}
	return text
}

// redactNamed replaces secrets recognized by the name before them. It keeps the error of a path that
// ends in such a name, like "open conf/password: permission denied".
func redactNamed(text string) string {
	if !mayNameSecret(text) {
		return text
	}
	var b strings.Builder
	end := 0
	for _, at := range namedSecret.FindAllStringSubmatchIndex(text, -1) {
		name, value := text[at[2]:at[3]], text[at[4]:at[5]]
		start := strings.LastIndexAny(text[:at[0]], " \t\n\"'=,&?(") + 1
		isPath := strings.HasSuffix(name, ": ") && strings.Contains(text[start:at[0]], "/")
		if operation, ok := strings.CutSuffix(text[:start], ` "`); ok && strings.HasSuffix(name, `": `) {
			isPath = operation != "" && isLetter(rune(operation[len(operation)-1])) // not a quoted name in JSON or YAML
		}
		if isPath && word.MatchString(value) {
			continue
		}
		b.WriteString(text[end:at[3]] + Removed)
		end = at[1]
	}
	return b.String() + text[end:]
}

// redactAssignments replaces secrets assigned in text that may be source code. The value must look
// generated ("password=hunter2", not "password=required"), and have no characters of code, such as
// $ and parentheses ("password=$PASSWORD1", "f(password=password1)").
func redactAssignments(text string) string {
	return replaceFunc(assignment, text, func(groups []string) string {
		if value := groups[2]; !assigned.MatchString(value) || !isOpaque(value) || !strings.ContainsFunc(value, isDigit) {
			return groups[0]
		}
		return groups[1] + Removed
	})
}

// isOpaque reports whether text looks generated: it has an asterisk, or an alphanumeric part of one of
// these kinds:
//   - 6 characters or more, with a letter, and with either a digit anywhere or a capital after the first character
//   - 20 characters or more, with a letter
//   - 10 digits or more
func isOpaque(text string) bool {
	if strings.Contains(text, "*") {
		return true
	}
	return slices.ContainsFunc(strings.FieldsFunc(text, func(r rune) bool { return !isLetter(r) && !isDigit(r) }), func(part string) bool {
		hasDigit, hasLetter := strings.ContainsFunc(part, isDigit), strings.ContainsFunc(part, isLetter)
		hasCapital := part[1:] != strings.ToLower(part[1:])
		return len(part) >= 6 && hasLetter && (hasDigit || hasCapital) || hasLetter && len(part) >= 20 || len(part) >= 10 && !hasLetter
	})
}

func isLetter(r rune) bool { return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' }

func isDigit(r rune) bool { return '0' <= r && r <= '9' }

// isCredential reports whether text looks like a token or, for basic, like USER:PASSWORD in base64.
func isCredential(scheme, text string) bool {
	if !strings.EqualFold(scheme, "basic") {
		return isOpaque(text)
	}
	decoded, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "="))
	return err == nil && strings.Contains(string(decoded), ":")
}

// replaceFunc replaces each match of a pattern by a function of its groups.
func replaceFunc(pattern *regexp.Regexp, text string, replace func(groups []string) string) string {
	return pattern.ReplaceAllStringFunc(text, func(match string) string { return replace(pattern.FindStringSubmatch(match)) })
}

// redactShapes searches for prefixes first, which is a hundred times faster than the regular expressions.
// With keepWords it keeps words after the prefix of a key or the name of a scheme.
func redactShapes(text string, keepWords bool) string {
	if lower := strings.ToLower(text); strings.Contains(lower, "bearer") || strings.Contains(lower, "basic") {
		text = replaceFunc(authScheme, text, func(groups []string) string {
			if keepWords && !isCredential(groups[2], groups[3]) {
				return groups[0]
			}
			return groups[1] + groups[2] + " " + Removed
		})
	}
	if strings.Contains(text, "://") && strings.Contains(text, "@") {
		text = userInfo.ReplaceAllString(text, `${1}`+Removed+`@`)
	}
	if strings.Contains(text, "PRIVATE KEY") {
		text = privateKey.ReplaceAllString(text, Removed)
	}
	if mayHaveKey(text) {
		text = replaceFunc(knownShape, text, func(groups []string) string {
			if keepWords && isPrefixed(groups[2]) && !isOpaque(groups[2]) {
				return groups[0]
			}
			return groups[1] + Removed
		})
	}
	return text
}

// distinctPrefixes are prefixes of keys that no word begins with.
var distinctPrefixes = []string{"AIza", "AKIA", "ASIA", "chr_", "chs_", "eyJ"}

// isPrefixed reports whether a key has one of keyPrefixes.
func isPrefixed(key string) bool {
	return !slices.ContainsFunc(distinctPrefixes, func(p string) bool { return strings.HasPrefix(key, p) })
}

func mayHaveKey(text string) bool {
	isIn := func(prefix string) bool { return strings.Contains(text, prefix) }
	return slices.ContainsFunc(keyPrefixes, func(p string) bool { return isIn(p+"-") || isIn(p+"_") }) ||
		slices.ContainsFunc(distinctPrefixes, isIn)
}

// RedactJSON makes JSON valid in an event: it renames fields named like an API key and drops their
// values. In strings, it removes known key formats, values of variables like OPENAI_API_KEY, and
// generated values assigned to other names ("password=hunter2"). It keeps other values after such
// names, because source code contains them ("password=required").
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
			value = redactAssignments(variable.ReplaceAllString(value, `${1}`+Removed))
		}
		return redactShapes(value, true)
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
