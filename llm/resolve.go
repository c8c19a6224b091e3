package llm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/sashabaranov/go-openai"

	"github.com/seed-9ed7edd4/chronicle/event"
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
// A context that chose no provider gets the worker's [Defaults], as does one
// that names the default provider without a URL.
//
// The key is the one that the context refers to. Without a reference it is the
// worker's, if the request goes to the worker's URL, or the preset's, if it
// goes to the preset's URL. To any other URL no key is sent: whoever can send
// an event to a context could otherwise have the worker's key sent to a server
// of their own.
//
// It fails with an [Error] of [KindConfiguration] that says what to set: for an
// unknown provider without a URL, for a URL that is none, and for a key that is
// needed and missing.
func (a *Adapter) Resolve(cfg reducer.ProviderConfig) (*Target, error) {
	cfg = a.defaults.applyTo(cfg)
	known := presets[cfg.ProviderID]
	home := known.baseURL
	if cfg.ProviderID == a.defaults.ProviderID && a.defaults.BaseURL != "" {
		home = a.defaults.BaseURL
	}
	base := strings.TrimRight(firstOf(cfg.BaseURL, home), "/")
	if base == "" {
		return nil, configError(cfg.ProviderID, "unknown provider: give it a baseUrl, or choose one of %s",
			strings.Join(Providers(), ", "))
	}
	if u, err := url.Parse(base); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, configError(cfg.ProviderID, "base URL %q: want an http or https URL like https://api.openai.com/v1", event.Redact(base, 200))
	}
	isPresetURL := base == known.baseURL

	keyRef := cfg.APIKeyRef
	if owner := a.ownerOf(keyRef, base); owner != "" {
		return nil, configError(cfg.ProviderID, "the key %s is that of %s and is not sent to %s (the worker's operator may allow it with --key-refs)",
			keyRef, owner, base)
	}
	if keyRef != a.defaults.APIKeyRef && !a.mayUse(keyRef) {
		return nil, configError(cfg.ProviderID, "the worker does not hand out the key %s (its operator may allow it with --key-refs; now %s)",
			keyRef, firstOf(strings.Join(a.keyRefs, ","), "none"))
	}
	if keyRef == "" && base == strings.TrimRight(home, "/") && cfg.ProviderID == a.defaults.ProviderID {
		keyRef = a.defaults.APIKeyRef
	}
	if keyRef == "" && isPresetURL {
		keyRef = known.keyRef
	}
	key, err := a.key(cfg.ProviderID, keyRef)
	if err != nil {
		return nil, err
	}

	t := &Target{
		ProviderID:     cfg.ProviderID,
		Model:          cfg.Model,
		BaseURL:        base,
		keyRef:         keyRef,
		secrets:        strings.NewReplacer(),
		quirks:         known.quirks,
		temperature:    cfg.Temperature,
		maxTokens:      cfg.MaxTokens,
		renderings:     a.renderings,
		readAttachment: a.readAttachment,
		readBlob:       a.readBlob,
		logger:         a.logger,
	}
	t.quirks.maxCompletionTokens = t.quirks.maxCompletionTokens && isPresetURL
	t.quirks = t.quirks.forModel(cfg.Model)
	t.quirks.textOnly = t.quirks.textOnly || cfg.TextOnly
	if key != "" {
		t.secrets = strings.NewReplacer(key, event.Removed)
	}
	config := openai.DefaultConfig(key)
	config.BaseURL = base
	config.HTTPClient = doer{a.http}
	t.client = openai.NewClientWithConfig(config)
	return t, nil
}

// ownerOf is the provider that a key belongs to, when the request goes elsewhere
// and no operator has said that it may; else "".
func (a *Adapter) ownerOf(ref, base string) string {
	if a.allowed {
		return ""
	}
	for _, id := range Providers() {
		if known := presets[id]; ref != "" && known.keyRef == ref && base != known.baseURL && !(id == a.defaults.ProviderID && base == strings.TrimRight(a.defaults.BaseURL, "/")) {
			return id
		}
	}
	return ""
}

// mayUse reports whether contexts may name the reference. What is no reference
// at all is refused elsewhere, without being repeated: it may be the key.
func (a *Adapter) mayUse(ref string) bool {
	return ref == "" || event.ValidateAPIKeyRef(ref) != nil || slices.ContainsFunc(a.keyRefs, func(pattern string) bool {
		ok, err := path.Match(pattern, ref)
		return ok && err == nil
	})
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
		// The reference is not repeated: it may be the key.
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
