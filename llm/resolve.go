package llm

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/secretref"
	"github.com/seed-9ed7edd4/chronicle/llm/baseurl"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// Target is a provider with the key that [Adapter.Resolve] read, and a model. It is safe for concurrent
// use, but [Target.Usage] is that of the newest request. Do not change fields during a request.
type Target struct {
	ProviderID string
	Model      string
	BaseURL    string // up to and including the version
	// FirstToken bounds the wait for the first token, Stall each pause after it. 0: unlimited.
	FirstToken, Stall time.Duration
	Conversation      string                // its id in traces; empty: none
	Settings          event.RequestSettings // override those of the provider config
	Repair            *reducer.Repair       // the invalid answer to correct; nil: none
	MaxOutput         int                   // limits the tokens of the answer if no setting does; 0: the provider's default
	Tools             []Tool                // that the model may call; without any, no tool settings are sent

	shared
	keyRef       string        // place of the key; empty without one
	isConfigured bool          // BaseURL is that of a preset or a configured provider
	key          func() string // "" without one; a function, so that the key is not printed with a target
	quirks       quirks
	lessons      lessons               // so far
	thinkTags    bool                  // see [Provider]
	defaults     event.RequestSettings // of the provider config
	window       int                   // configured, in tokens; 0: unknown
	price        *Price                // nil: unknown
	priceVersion string
	meter        *atomic.Pointer[meter] // of the newest request
}

// Resolve returns the target for the provider config of a context.
//
// A context names a provider by its id, or gets the worker's [Defaults]. It may also name the base
// URL of a preset or a configured provider, or one that the operator allows, see [Options]. Presets of local
// servers require the same permission: not every sender of events may use the worker's machine.
//
// A key, even one that the context refers to, is sent only to the base URL that it is configured
// for.
//
// On failure it returns an [Error] of [KindConfiguration] that says what to configure.
func (a *Adapter) Resolve(cfg reducer.ProviderConfig) (*Target, error) {
	current := a.current.Load()
	cfg = current.defaults.applyTo(cfg)
	known, base, err := current.destination(cfg)
	if err != nil {
		return nil, err
	}
	keyRef := known.KeyRef
	if base != known.BaseURL {
		keyRef = ""
	}
	if ref := cfg.APIKeyRef; ref != "" && ref != keyRef {
		if event.ValidateAPIKeyRef(ref) != nil {
			// The error omits the reference, which may be the key.
			return nil, configError(cfg.ProviderID, "apiKeyRef is neither env:NAME nor file:/path")
		}
		if !current.isKeyOf(ref, base) {
			return nil, configError(cfg.ProviderID, "the key %s is not configured for %s (omit apiKeyRef, "+
				"or let the worker's operator configure the key for this URL in the file of --providers)", ref, base)
		}
		keyRef = ref
	}
	key, err := a.key(cfg.ProviderID, keyRef)
	if err != nil {
		return nil, err
	}

	t := &Target{
		shared:       a.shared,
		ProviderID:   cfg.ProviderID,
		Model:        cfg.Model,
		BaseURL:      base.String(),
		keyRef:       keyRef,
		isConfigured: current.isConfigured(base),
		key:          func() string { return key },
		quirks:       known.quirks,
		thinkTags:    known.ThinkTags && base == known.BaseURL,
		defaults:     event.RequestSettings{Temperature: cfg.Temperature, MaxTokens: cfg.MaxTokens},
		priceVersion: current.priceVersion,
		meter:        new(atomic.Pointer[meter]),
	}
	t.quirks.maxCompletionTokens = t.quirks.maxCompletionTokens && base == known.BaseURL
	t.quirks.fetchesPDFs = t.quirks.fetchesPDFs && base == known.BaseURL
	t.quirks = t.quirks.forModel(cfg.Model)
	t.quirks.accepts = known.accepts(base, cfg.Model)
	t.quirks.textOnly = t.quirks.textOnly || known.TextOnly || cfg.TextOnly
	t.quirks.tools.none = known.NoTools && base == known.BaseURL
	if base == known.BaseURL {
		m := known.Model(cfg.Model)
		t.window, t.price = m.ContextWindow, m.Price
	}
	t.lessons = a.experience.of(destination{t.BaseURL, t.Model})
	t.quirks = t.quirks.learned(t.lessons)
	return t, nil
}

// destination returns the entry of the provider (empty: unknown) and the base URL to use. It fails if
// the URL is not permitted.
func (t *table) destination(cfg reducer.ProviderConfig) (entry, baseurl.URL, error) {
	known, isKnown := t.providers[cfg.ProviderID]
	if known.problem != nil && cfg.BaseURL == "" {
		return known, baseurl.URL{}, configError(cfg.ProviderID, "the base URL of the provider is invalid: %v (want %s)", known.problem, exampleURL)
	}
	if cfg.BaseURL == "" && !isKnown {
		return known, baseurl.URL{}, configError(cfg.ProviderID, "unknown provider (want one of %s, or let the worker's operator add it to the file of --providers)",
			strings.Join(slices.Sorted(maps.Keys(t.providers)), ", "))
	}
	base := known.BaseURL
	if cfg.BaseURL != "" {
		var err error
		if base, err = baseurl.Parse(cfg.BaseURL); err != nil {
			return known, base, configError(cfg.ProviderID, "baseUrl is invalid: %v (want %s)", err, exampleURL)
		}
	}
	if t.isConfigured(base) || t.isAllowed(base) {
		return known, base, nil
	}
	return known, base, configError(cfg.ProviderID, "the worker may not connect to %s (its operator can allow it with --allow-base-url %s, "+
		"or configure a provider with this URL in the file of --providers)", base, base)
}

const exampleURL = "an http or https URL like https://api.openai.com/v1"

func (t *table) isConfigured(base baseurl.URL) bool {
	for _, e := range t.providers {
		if e.problem == nil && e.BaseURL == base && (!e.isLocal || t.isAllowed(base)) {
			return true
		}
	}
	return false
}

func (t *table) isAllowed(base baseurl.URL) bool {
	return t.allowLoopback && base.IsLoopback() ||
		slices.ContainsFunc(t.allowBaseURLs, func(allowed baseurl.URL) bool { return allowed.Contains(base) })
}

func (t *table) isKeyOf(ref string, base baseurl.URL) bool {
	for _, e := range t.providers {
		if e.problem == nil && e.BaseURL == base && e.KeyRef == ref {
			return true
		}
	}
	return false
}

// MissingKeys returns an error for each of [Options].Providers whose key cannot be read now.
func (a *Adapter) MissingKeys() (missing []error) {
	for _, p := range a.current.Load().configured {
		if _, err := a.key(p.ID, p.KeyRef); err != nil {
			missing = append(missing, err)
		}
	}
	return missing
}

func (a *Adapter) key(providerID, ref string) (string, error) {
	if ref == "" {
		return "", nil
	}
	if name, isVariable := strings.CutPrefix(ref, "env:"); isVariable && strings.TrimSpace(a.getenv(name)) == "" {
		return "", configError(providerID,
			`no API key (set %s for the worker, or choose another provider with "starter set provider")`, name)
	}
	key, err := secretref.Read(ref, a.getenv, a.readFile)
	if err != nil {
		return "", configError(providerID, "no API key on the worker: %v", err)
	}
	if strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", configError(providerID, "no API key on the worker: the content of %s is not a key (want one word of ASCII)", ref)
	}
	return key, nil
}

func configError(providerID, format string, args ...any) error {
	return &Error{ProviderID: providerID, Kind: KindConfiguration, Message: fmt.Sprintf(format, args...)}
}
