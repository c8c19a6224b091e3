package event

import (
	"fmt"
	"net/url"
	"path"
	"regexp"
	"strings"
)

// SetProviderConfig sets the provider and the model, and replaces all their settings. Without this event, a context uses the
// default of its worker.
//
//schema:rules {"anyOf":[{"required":["providerId","model"]},{"required":["useDefault"]}]}
//schema:rules {"properties":{"apiKeyRef":{"pattern":"^(env:[A-Za-z_][A-Za-z0-9_]{0,127}|file:/.*)?$"}}}
//schema:rules {"properties":{"baseUrl":{"pattern":"^(https?://[!$&-.0-;=A-Z_a-z~\\[\\]]+(/[!$&-;=@-\\[\\]_a-z~]*)?)?$"}}}
//doc:effect none; sets the provider or the fallback; `useDefault` returns to the worker's default or to no fallback
type SetProviderConfig struct {
	// A preset such as `openai`, a provider that the worker configures, or, with BaseURL, any name.
	ProviderID string `json:"providerId,omitempty" schema:"is=Name"`
	Model      string `json:"model,omitempty" schema:"is=Name"`
	// Where the worker finds the key, never the key itself: `env:NAME` or `file:/absolute/path`, at most 2048 bytes.
	// The worker's operator must allow it for the URL. Absent or empty: the default of the provider.
	APIKeyRef string `json:"apiKeyRef,omitempty"`
	// The URL of a server with OpenAI's chat completions API, such as `https://api.openai.com/v1`, without user, query
	// or fragment. The worker's operator must configure or allow it. A URL that is only allowed receives no key.
	// Absent or empty: the URL of the provider.
	BaseURL string `json:"baseUrl,omitempty" schema:"max=maxURLBytes"`
	// Absent: the default of the provider.
	Temperature *float64 `json:"temperature,omitempty" schema:"min=0,max=MaxTemperature"`
	// The maximum length of an answer, in tokens; absent: the default of the provider.
	MaxTokens *int `json:"maxTokens,omitempty" schema:"min=1,max=MaxMaxTokens"`
	// Whether the model accepts only text: attachments, including text files, are replaced by notes.
	TextOnly bool `json:"textOnly,omitempty"`
	// Whether these settings are the fallback, used when the primary provider rejects a request or its retries are
	// exhausted.
	AsFallback bool `json:"asFallback,omitempty"`
	// Return to the default provider of the worker or, with AsFallback, to no fallback; without other settings.
	UseDefault bool `json:"useDefault,omitempty"`
}

// Bounds of a [SetProviderConfig] and of [RequestSettings].
const (
	MaxTemperature = 2
	MaxMaxTokens   = 10_000_000
)

const TagSetProviderConfig Tag = "SetProviderConfigEvent"

func (SetProviderConfig) Tag() Tag { return TagSetProviderConfig }

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

// String describes the model: "openai gpt-4o-mini, temperature 0.3".
func (s SetProviderConfig) String() string {
	switch {
	case s.UseDefault && s.AsFallback:
		return "none"
	case s.UseDefault:
		return "the worker's default"
	}
	text := s.ProviderID + " " + s.Model
	if s.BaseURL != "" {
		text += " at " + s.BaseURL
	}
	if s.APIKeyRef != "" {
		text += ", key " + s.APIKeyRef
	}
	if s.Temperature != nil {
		text += fmt.Sprintf(", temperature %g", *s.Temperature)
	}
	if s.MaxTokens != nil {
		text += fmt.Sprintf(", at most %d tokens", *s.MaxTokens)
	}
	if s.TextOnly {
		text += ", text only"
	}
	return text
}

func (b SetProviderConfig) Words() (subject, text string) {
	if b.AsFallback {
		return "set fallback", b.String()
	}
	return "set provider", b.String()
}

func (b SetProviderConfig) Setting() string {
	if b.AsFallback {
		return "Fallback"
	}
	return "Model"
}

func (SetProviderConfig) example() Body {
	return SetProviderConfig{
		ProviderID: "ollama", Model: "llama3.2", BaseURL: "http://127.0.0.1:11434/v1", APIKeyRef: "env:OLLAMA_KEY",
		Temperature: new(0.3), MaxTokens: new(1000), TextOnly: true,
	}
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
