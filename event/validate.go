package event

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds, most of them far beyond useful values, to detect wrong units.
const (
	MaxMaxRetries    = 100
	MaxDelayMs       = 60 * 60 * 1000      // an hour
	MaxTimeoutMs     = 24 * 60 * 60 * 1000 // a day
	MaxQuietPeriodMs = 60 * 1000           // a minute
	MaxBackoffFactor = 100
	MaxTemperature   = 2
	MaxMaxTokens     = 10_000_000
	MaxNameBytes     = 256
	maxURLBytes      = 2048
	maxNestingDepth  = 100
	maxCallIDs       = 128 // of an answer
)

// MaxAttachmentBytes bounds a referenced blob. Lowering it would invalidate existing logs.
const MaxAttachmentBytes = 20 << 20

func (b SystemPrompt) validate() error { return text("content", b.Content) }

func (b UserMessage) validate() error {
	if err := text("content", b.Content); err != nil || b.Settings == nil {
		return err
	}
	return within("settings", b.Settings.validate())
}

func (b AssistantMessage) validate() error {
	if err := text("content", b.Content); err != nil {
		return err
	}
	if err := text("reasoning", b.Reasoning); err != nil {
		return err
	}
	if len(b.Reasoning) > MaxReasoningBytes {
		return fieldf("reasoning", "%d bytes (at most %d)", len(b.Reasoning), MaxReasoningBytes)
	}
	if b.ProviderState == nil {
		return nil
	}
	return b.ProviderState.Validate()
}

// Validate returns a [*FieldError] for the first invalid field.
func (s ProviderState) Validate() error {
	if err := ValidateName("providerState.providerId", s.ProviderID); err != nil {
		return err
	}
	if err := ValidateName("providerState.model", s.Model); err != nil {
		return err
	}
	if err := validateBaseURL("providerState.baseUrl", s.BaseURL); err != nil {
		return err
	}
	if s.BaseURL == "" {
		return fieldf("providerState.baseUrl", "missing")
	}
	if len(s.Data) > MaxProviderStateBytes {
		return fieldf("providerState.data", "%d bytes (at most %d)", len(s.Data), MaxProviderStateBytes)
	}
	size := 0
	for _, id := range s.CallIDs {
		size += len(id)
		if err := text("providerState.callIds", id); err != nil {
			return err
		}
	}
	if len(s.CallIDs) > maxCallIDs || size > MaxProviderStateBytes {
		return fieldf("providerState.callIds", "%d ids with %d bytes (at most %d and %d)", len(s.CallIDs), size, maxCallIDs, MaxProviderStateBytes)
	}
	if len(s.Data) == 0 && len(s.CallIDs) > 0 {
		return nil
	}
	if len(s.Data) == 0 || s.Data[0] != '{' {
		return fieldf("providerState.data", "want an object")
	}
	if err := value("providerState.data", s.Data); err != nil {
		return err
	}
	if isTooDeep(s.Data, maxNestingDepth) {
		return fieldf("providerState.data", "nested more than %d levels deep", maxNestingDepth)
	}
	return nil
}

func (b FileAttachment) validate() error {
	if err := b.Source.validate(); err != nil {
		return err
	}
	if !mediaType.MatchString(b.MediaType) {
		return fieldf("mediaType", "want a media type like image/png (RFC 6838), got %s", quote(b.MediaType))
	}
	if b.Size < 0 {
		return fieldf("size", "want 0 or more, got %d", b.Size)
	}
	if !b.Source.IsRef() {
		return nil
	}
	if b.Size < 1 || b.Size > MaxAttachmentBytes {
		return fieldf("size", "want 1 to %d bytes with a ref, got %d", MaxAttachmentBytes, b.Size)
	}
	if MediaOf(b.MediaType) == MediaOther {
		return fieldf("mediaType", "with a ref, want %s; got %s", mediaTypes, quote(b.MediaType))
	}
	return nil
}

const mediaTypePattern = `^[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,126}/[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,126}(;[\x20-\x7e]*)?$`

var mediaType = regexp.MustCompile(mediaTypePattern)

var blobRef = regexp.MustCompile(`^sha256/[0-9a-f]{64}$`)

func (s Source) validate() error {
	switch s.Type {
	case SourceFile:
		if s.Path == "" {
			return fieldf("source.path", "missing (required for type file)")
		}
	case SourceURL:
		u, err := url.Parse(s.URL)
		if err != nil || u.Scheme != "data" && (u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
			return fieldf("source.url", "want an http, https or data URL")
		}
		if u.User != nil {
			return fieldf("source.url", "contains a user name or password (remove it; the log would keep it)")
		}
	case SourceBlob:
		switch {
		case len(s.Data) > 0 && s.Ref != "":
			return fieldf("source.ref", "set together with data (want only one of them)")
		case s.Ref != "" && !blobRef.MatchString(s.Ref):
			return fieldf("source.ref", "want sha256/ and 64 lowercase hex digits, got %s", quote(s.Ref))
		case s.Ref == "" && len(s.Data) == 0:
			return fieldf("source.data", "missing (type blob requires data in base64 or a ref)")
		}
	default:
		return fieldf("source.type", "want %s, %s or %s, got %s", SourceFile, SourceURL, SourceBlob, quote(s.Type))
	}
	return nil
}

func (b ToolCall) validate() error {
	if b.ToolCallID == "" {
		return fieldf("toolCallId", "empty")
	}
	if err := ValidateName("toolName", b.ToolName); err != nil {
		return err
	}
	return value("parameters", b.Parameters)
}

func (b ToolResult) validate() error {
	switch {
	case b.ToolCallID == "":
		return fieldf("toolCallId", "empty")
	case has(b.Value) && has(b.Error):
		return fieldf("error", "set together with value (want only one of them)")
	case !has(b.Value) && !has(b.Error):
		return fieldf("value", "missing (want a value or an error)")
	}
	if b.DurationMs < 0 {
		return fieldf("durationMs", "want 0 or more, got %d", b.DurationMs)
	}
	if err := value("value", b.Value); err != nil {
		return err
	}
	return value("error", b.Error)
}

// has reports whether a value is present; null counts as missing.
func has(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// value accepts any JSON without fields named like an API key.
func value(field string, raw json.RawMessage) error {
	if len(raw) > 0 && !json.Valid(raw) {
		return fieldf(field, "invalid JSON")
	}
	return RefuseKeys(map[string]json.RawMessage{field: raw})
}

func (b Note) validate() error {
	if !slices.Contains(noteKinds, b.Kind) {
		return fieldf("kind", "want %s, got %s", oneOf(noteKinds), quote(string(b.Kind)))
	}
	return text("content", b.Content)
}

func (b SetRetryConfig) validate() error {
	if b.MaxRetries < 0 || b.MaxRetries > MaxMaxRetries {
		return fieldf("maxRetries", "want 0 (a single attempt) to %d, got %d", MaxMaxRetries, b.MaxRetries)
	}
	if err := between("initialDelayMs", b.InitialDelayMs, 1, MaxDelayMs); err != nil {
		return err
	}
	if f := b.BackoffFactor; f != nil && !(*f >= 1 && *f <= MaxBackoffFactor) {
		return fieldf("backoffFactor", "want 1 to %d, got %v", MaxBackoffFactor, *f)
	}
	if b.MaxDelayMs != nil {
		return between("maxDelayMs", *b.MaxDelayMs, b.InitialDelayMs, MaxDelayMs)
	}
	return nil
}

func (b SetProviderConfig) validate() error {
	if b.UseDefault {
		if b != (SetProviderConfig{UseDefault: true, AsFallback: b.AsFallback}) {
			return fieldf("useDefault", "cannot be used with other settings, except asFallback")
		}
		return nil
	}
	if err := ValidateName("providerId", b.ProviderID); err != nil {
		return err
	}
	if err := ValidateName("model", b.Model); err != nil {
		return err
	}
	if err := ValidateAPIKeyRef(b.APIKeyRef); err != nil {
		return err
	}
	if err := validateBaseURL("baseUrl", b.BaseURL); err != nil {
		return err
	}
	if t := b.Temperature; t != nil && !(*t >= 0 && *t <= MaxTemperature) {
		return fieldf("temperature", "want 0 to %d, got %v", MaxTemperature, *t)
	}
	if n := b.MaxTokens; n != nil && (*n < 1 || *n > MaxMaxTokens) {
		return fieldf("maxTokens", "want 1 to %d, got %d", MaxMaxTokens, *n)
	}
	return nil
}

// ValidateAPIKeyRef accepts "", env:NAME and file:/PATH. The error omits ref, which may be a key.
func ValidateAPIKeyRef(ref string) error {
	kind, place, _ := strings.Cut(ref, ":")
	switch {
	case ref == "",
		kind == "env" && envName.MatchString(place),
		kind == "file" && path.IsAbs(place) && len(place) <= maxURLBytes && !strings.ContainsFunc(place, isControl):
		return nil
	}
	return fieldf("apiKeyRef", "want env:NAME or file:/absolute/path (where the worker finds the key, never the key itself)")
}

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

// validateBaseURL returns errors without the URL, which may contain a key.
func validateBaseURL(field, raw string) error {
	if raw == "" {
		return nil
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || len(raw) > maxURLBytes:
		return fieldf(field, "want an http or https URL like https://api.openai.com/v1")
	case strings.ContainsFunc(raw, func(r rune) bool { return r <= ' ' || r > '~' || r == '\\' || r == '%' }):
		return fieldf(field, "has a space, a backslash, a percent sign or a character beyond ASCII")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return fieldf(field, "contains a user, query or fragment (put the key in apiKeyRef)")
	}
	return nil
}

func (b SetTimeout) validate() error {
	if err := between("timeoutMs", b.TimeoutMs, 1, MaxTimeoutMs); err != nil {
		return err
	}
	// A longer timeout than that of the whole attempt would never fire.
	if ms := b.FirstTokenMs; ms != nil {
		if err := between("firstTokenMs", *ms, 1, b.TimeoutMs); err != nil {
			return err
		}
	}
	if ms := b.StallMs; ms != nil {
		return between("stallMs", *ms, 1, b.TimeoutMs)
	}
	return nil
}

func (b SetDeliveryPolicy) validate() error {
	switch {
	case b.Policy == "" && b.QuietPeriodMs == nil && b.MaxWaitMs == nil:
		return fieldf("policy", "missing (want policy, quietPeriodMs or maxWaitMs)")
	case b.Policy != "" && !slices.Contains(Policies(), b.Policy):
		return fieldf("policy", "want %s, got %s", oneOf(Policies()), quote(string(b.Policy)))
	}
	if ms := b.QuietPeriodMs; ms != nil {
		if err := between("quietPeriodMs", *ms, 0, MaxQuietPeriodMs); err != nil {
			return err
		}
	}
	if ms := b.MaxWaitMs; ms != nil {
		return between("maxWaitMs", *ms, 0, MaxQuietPeriodMs)
	}
	return nil
}

func (b SetRequestSettings) validate() error { return RequestSettings(b).validate() }

func (b SessionStarted) validate() error {
	if b.LoadedEventCount < 0 {
		return fieldf("loadedEventCount", "want 0 or more, got %d", b.LoadedEventCount)
	}
	if b.ForkedFrom != "" && Counter(b.ForkedFrom) == 0 {
		return fieldf("forkedFrom", "want the id of an event, like %s, got %s", FormatID("demo", 7), quote(b.ForkedFrom))
	}
	return nil
}

func (SessionEnded) validate() error { return nil }

func (b LLMRequestStarted) validate() error {
	if b.Purpose != "" && b.Purpose != PurposeCompaction {
		return fieldf("purpose", "want %s, got %s", PurposeCompaction, quote(string(b.Purpose)))
	}
	return requestID(b.RequestID)
}

func (b TextDelta) validate() error      { return requestID(b.RequestID) }
func (b ReasoningDelta) validate() error { return requestID(b.RequestID) }

func (b LLMRequestCompleted) validate() error {
	return cmp.Or(requestID(b.RequestID), b.Usage.validate())
}

func (b LLMRequestFailed) validate() error {
	return cmp.Or(requestID(b.RequestID), b.Kind.validate(), b.Usage.validate())
}

func (b LLMRequestFellBack) validate() error {
	return cmp.Or(requestID(b.RequestID), b.Kind.validate(), b.Usage.validate())
}

func (b LLMRequestInterrupted) validate() error {
	if !slices.Contains(reasons, b.Reason) {
		return fieldf("reason", "want %s, got %s", oneOf(reasons), quote(string(b.Reason)))
	}
	return cmp.Or(requestID(b.RequestID), b.Usage.validate())
}

func (b LLMAttemptEnded) validate() error {
	if !slices.Contains(attemptOutcomes, b.Outcome) {
		return fieldf("outcome", "want %s, got %s", oneOf(attemptOutcomes), quote(string(b.Outcome)))
	}
	if b.Attempt < 1 {
		return fieldf("attempt", "want 1 or more, got %d", b.Attempt)
	}
	return cmp.Or(requestID(b.RequestID), b.Kind.validate(), b.Usage.validate())
}

func (InputRejected) validate() error { return nil }

func oneOf[T ~string](values []T) string {
	var list strings.Builder
	for i, value := range values {
		switch i {
		case 0:
		case len(values) - 1:
			list.WriteString(" or ")
		default:
			list.WriteString(", ")
		}
		list.WriteString(string(value))
	}
	return list.String()
}

func requestID(id string) error {
	if id == "" {
		return fieldf("requestId", "empty")
	}
	return nil
}

// text checks that s is valid UTF-8. JSON guarantees it, Go callers do not.
func text(field, s string) error {
	if !utf8.ValidString(s) {
		return fieldf(field, "invalid UTF-8")
	}
	return nil
}

// ValidateName accepts names of 1 to [MaxNameBytes] bytes of UTF-8, not blank. It rejects control
// characters, because terminals print the names. Errors name the field.
func ValidateName(field, s string) error {
	if strings.TrimSpace(s) == "" {
		return fieldf(field, "empty")
	}
	if len(s) > MaxNameBytes || !utf8.ValidString(s) {
		return fieldf(field, "want at most %d bytes of UTF-8", MaxNameBytes)
	}
	if strings.ContainsFunc(s, isControl) {
		return fieldf(field, "has a control character (line breaks, C0, C1 and bidirectional controls are rejected)")
	}
	return nil
}

// isControl also matches line and paragraph separators, and bidirectional controls (UAX #9).
func isControl(r rune) bool {
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || unicode.Is(unicode.Bidi_Control, r)
}

func between(field string, got, low, high int64) error {
	if got < low || got > high {
		return &FieldError{Field: field, Problem: fmt.Sprintf("want %d to %d, got %d", low, high, got), Range: &Range{got, low, high}}
	}
	return nil
}
