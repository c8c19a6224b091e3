package llm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sashabaranov/go-openai"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm/baseurl"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// Target is a provider and a model that are ready to be asked. It is safe for
// concurrent use; the key in it was read once, by [Adapter.Resolve].
type Target struct {
	ProviderID string
	Model      string
	// BaseURL is where requests go, up to and including the version.
	BaseURL string
	// FirstToken bounds the wait for the beginning of an answer, from sending
	// the request, and Stall each silence after it. 0 means no bound but that
	// of the context. Not to be changed while a request runs.
	FirstToken, Stall time.Duration
	// Conversation names the conversation that the messages are of, so that a
	// request renders only what differs from the one before. Empty: each renders
	// everything. Not to be changed while a request runs.
	Conversation string

	keyRef         string // where the key came from; empty when none is sent
	isConfigured   bool   // the operator named BaseURL as that of a provider
	client         *openai.Client
	secrets        *strings.Replacer // takes the literal key out of a text
	quirks         quirks
	temperature    *float64
	maxTokens      *int
	renderings     *renderings
	readAttachment func(string) ([]byte, error)
	readBlob       func(context.Context, string) ([]byte, error)
	logger         *slog.Logger
}

// Resolve finds the URL, the key and the quirks of a provider.
//
// Contexts name a provider by its id. A context that chose none gets the
// worker's [Defaults]. A context may also name a base URL: that of a provider of
// the table, or one that the operator allows, see [Options]. Presets of local
// servers have to be allowed in the same way, since the worker's machine is not
// open to every sender of an event.
//
// A key is sent to the base URL that it is configured for and to no other. It is
// that of the provider if the request goes to the provider's URL; a key that the
// context refers to is accepted if it is configured for the URL.
//
// It fails with an [Error] of [KindConfiguration] that says what to configure.
func (a *Adapter) Resolve(cfg reducer.ProviderConfig) (*Target, error) {
	cfg = a.defaults.applyTo(cfg)
	known, base, err := a.destination(cfg)
	if err != nil {
		return nil, err
	}
	keyRef := known.KeyRef
	if base != known.BaseURL {
		keyRef = ""
	}
	if ref := cfg.APIKeyRef; ref != "" && ref != keyRef {
		if event.ValidateAPIKeyRef(ref) != nil {
			// The reference is not repeated: it may be the key.
			return nil, configError(cfg.ProviderID, "apiKeyRef is neither env:NAME nor file:/path")
		}
		if !a.isKeyOf(ref, base) {
			return nil, configError(cfg.ProviderID, "the key %s is not configured for %s (leave apiKeyRef out, "+
				"or the worker's operator ties the key to this URL in the file of --providers)", ref, base)
		}
		keyRef = ref
	}
	key, err := a.key(cfg.ProviderID, keyRef)
	if err != nil {
		return nil, err
	}

	t := &Target{
		ProviderID:     cfg.ProviderID,
		Model:          cfg.Model,
		BaseURL:        base.String(),
		keyRef:         keyRef,
		isConfigured:   a.isConfigured(base),
		secrets:        strings.NewReplacer(),
		quirks:         known.quirks,
		temperature:    cfg.Temperature,
		maxTokens:      cfg.MaxTokens,
		renderings:     a.renderings,
		readAttachment: a.readAttachment,
		readBlob:       a.readBlob,
		logger:         a.logger,
	}
	t.quirks.maxCompletionTokens = t.quirks.maxCompletionTokens && base == known.BaseURL
	t.quirks = t.quirks.forModel(cfg.Model)
	t.quirks.textOnly = t.quirks.textOnly || known.TextOnly || cfg.TextOnly
	if key != "" {
		t.secrets = strings.NewReplacer(key, event.Removed)
	}
	config := openai.DefaultConfig(key)
	config.BaseURL = t.BaseURL
	config.HTTPClient = doer{a.http}
	t.client = openai.NewClientWithConfig(config)
	return t, nil
}

// destination finds the row of a provider and the URL that a request of a
// context goes to, if it may go there. The row of an unknown provider is empty.
func (a *Adapter) destination(cfg reducer.ProviderConfig) (entry, baseurl.URL, error) {
	known, isKnown := a.providers[cfg.ProviderID]
	if known.problem != nil && cfg.BaseURL == "" {
		return known, baseurl.URL{}, configError(cfg.ProviderID, "the base URL of the provider is invalid: %v (want %s)", known.problem, exampleURL)
	}
	if cfg.BaseURL == "" && !isKnown {
		return known, baseurl.URL{}, configError(cfg.ProviderID, "unknown provider (choose one of %s, or the worker's operator adds it to the file of --providers)",
			strings.Join(slices.Sorted(maps.Keys(a.providers)), ", "))
	}
	base := known.BaseURL
	if cfg.BaseURL != "" {
		var err error
		if base, err = baseurl.Parse(cfg.BaseURL); err != nil {
			return known, base, configError(cfg.ProviderID, "baseUrl is invalid: %v (want %s)", err, exampleURL)
		}
	}
	if a.isConfigured(base) || a.isAllowed(base) {
		return known, base, nil
	}
	return known, base, configError(cfg.ProviderID, "the worker does not connect to %s (its operator may allow it with --allow-base-url %s, "+
		"or configure a provider with this URL in the file of --providers)", base, base)
}

const exampleURL = "an http or https URL like https://api.openai.com/v1"

// isConfigured reports whether a URL is that of a provider of the table.
func (a *Adapter) isConfigured(base baseurl.URL) bool {
	for _, e := range a.providers {
		if e.problem == nil && e.BaseURL == base && (!e.isLocal || a.isAllowed(base)) {
			return true
		}
	}
	return false
}

// isAllowed reports whether contexts may name a URL.
func (a *Adapter) isAllowed(base baseurl.URL) bool {
	return a.allowLoopback && base.IsLoopback() ||
		slices.ContainsFunc(a.allowBaseURLs, func(allowed baseurl.URL) bool { return allowed.Contains(base) })
}

// isKeyOf reports whether a key is configured for a URL.
func (a *Adapter) isKeyOf(ref string, base baseurl.URL) bool {
	for _, e := range a.providers {
		if e.problem == nil && e.BaseURL == base && e.KeyRef == ref {
			return true
		}
	}
	return false
}

// MissingKeys is an error for each provider of [Options].Providers whose key
// cannot be read now. Keys are read anew for each request.
func (a *Adapter) MissingKeys() (missing []error) {
	for _, p := range a.configured {
		if _, err := a.key(p.ID, p.KeyRef); err != nil {
			missing = append(missing, err)
		}
	}
	return missing
}

// key reads the key behind a reference; an empty reference has none.
func (a *Adapter) key(providerID, ref string) (string, error) {
	var raw, place string
	switch kind, name, _ := strings.Cut(ref, ":"); kind {
	case "":
		return "", nil
	case "env":
		place = "the environment variable " + name
		raw = a.getenv(name)
		if strings.TrimSpace(raw) == "" {
			return "", configError(providerID,
				`no API key; set %s for the worker, or point the context elsewhere with "starter set provider"`, name)
		}
	case "file":
		place = "the file " + name
		data, err := a.readFile(name)
		if err != nil {
			return "", configError(providerID, "no API key; the worker cannot read %s: %s", name, reasonOf(err))
		}
		raw = string(data)
		if strings.TrimSpace(raw) == "" {
			return "", configError(providerID, "no API key; %s is empty", place)
		}
	default:
		return "", configError(providerID, "no API key; the reference is neither env:NAME nor file:/path")
	}
	key := strings.TrimSpace(raw)
	if strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", configError(providerID, "no API key; what is in %s is not one: want one word of ASCII", place)
	}
	return key, nil
}

// reasonOf is why a file could not be read, without its path.
func reasonOf(err error) string {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		err = pathErr.Err
	}
	return event.Redact(err.Error(), 200)
}

func configError(providerID, format string, args ...any) error {
	return &Error{ProviderID: providerID, Kind: KindConfiguration, Message: fmt.Sprintf(format, args...)}
}

func firstOf(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}
