package llm

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/seed-9ed7edd4/chronicle/llm/baseurl"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// Options configure an [Adapter]. The zero value is valid.
type Options struct {
	// HTTPClient sends the requests; it should neither retry nor follow redirects. Nil:
	// [NewHTTPClient].
	HTTPClient *http.Client
	// Getenv looks up keys of the form env:NAME. Nil: [os.Getenv].
	Getenv func(string) string
	// ReadFile reads keys of the form file:/path. Nil: [os.ReadFile].
	ReadFile func(string) ([]byte, error)
	// Providers are added to the presets; one with the id of a preset replaces it.
	Providers []Provider
	// PriceVersion is the version of the prices of Providers, at most
	// [event.MaxPriceVersionBytes]. Empty: the first 12 hex digits of their SHA-256 hash.
	PriceVersion string
	// AllowBaseURLs are the base URLs that contexts may use, including the paths below them;
	// see [baseurl.URL.Contains]. They get no key.
	AllowBaseURLs []baseurl.URL
	// AllowLoopback lets contexts use any base URL on this machine.
	AllowLoopback bool
	// Defaults is the provider of contexts without one of their own.
	Defaults Defaults
	// ReadAttachment reads an attachment from a file and decides which paths may be read. Nil:
	// such attachments become notes to the model.
	ReadAttachment func(path string) ([]byte, error)
	// ReadBlob reads an attachment that refers to a blob by [event.Source.Ref], within
	// [BlobTimeout]. Nil: such attachments become notes to the model.
	ReadBlob func(ctx context.Context, ref string) ([]byte, error)
	// Logger logs attachments that cannot be read. Nil: discard.
	Logger *slog.Logger
}

// BlobTimeout bounds the time to read a blob, so that a slow store does not block a request.
const BlobTimeout = 5 * time.Second

// Defaults are the provider of contexts without one of their own, see
// [reducer.ProviderConfig.IsDefault]. Empty fields keep the value of the context's initial
// config.
type Defaults struct {
	ProviderID string
	// BaseURL is also the URL of the provider for contexts that name it without a URL.
	BaseURL string
	Model   string
	// APIKeyRef is the place of the key for BaseURL: env:NAME or file:/path. If it is empty and
	// BaseURL is not, no key is sent.
	APIKeyRef string
}

// DefaultsFromEnv reads the variables of the official OpenAI libraries, OPENAI_API_KEY and
// OPENAI_BASE_URL, and OPENAI_MODEL. It refers to the key without reading it.
func DefaultsFromEnv(getenv func(string) string) Defaults {
	d := Defaults{
		ProviderID: "openai",
		BaseURL:    getenv("OPENAI_BASE_URL"),
		Model:      getenv("OPENAI_MODEL"),
	}
	if getenv("OPENAI_API_KEY") != "" {
		d.APIKeyRef = "env:OPENAI_API_KEY"
	}
	return d
}

// applyTo returns the config of a context with the defaults of the worker applied.
func (d Defaults) applyTo(cfg reducer.ProviderConfig) reducer.ProviderConfig {
	if !cfg.IsDefault {
		return cfg
	}
	if d.ProviderID != "" {
		cfg.ProviderID = d.ProviderID
	}
	if d.Model != "" {
		cfg.Model = d.Model
	}
	return cfg
}

// Adapter finds providers and sends requests to them. It is safe for concurrent use.
type Adapter struct {
	http           *http.Client
	getenv         func(string) string
	readFile       func(string) ([]byte, error)
	providers      map[string]entry
	configured     []Provider
	priceVersion   string
	counter        *tokenCounter
	allowBaseURLs  []baseurl.URL
	allowLoopback  bool
	defaults       Defaults
	renderings     *renderings
	readAttachment func(string) ([]byte, error)
	readBlob       func(context.Context, string) ([]byte, error)
	logger         *slog.Logger
}

// New returns an adapter.
func New(o Options) *Adapter {
	a := &Adapter{
		http:           o.HTTPClient,
		getenv:         o.Getenv,
		readFile:       o.ReadFile,
		providers:      newTable(o.Defaults, o.Providers),
		configured:     o.Providers,
		priceVersion:   cmp.Or(o.PriceVersion, versionOf(o.Providers)),
		counter:        newTokenCounter(),
		allowBaseURLs:  o.AllowBaseURLs,
		allowLoopback:  o.AllowLoopback,
		defaults:       o.Defaults,
		renderings:     newRenderings(),
		readAttachment: o.ReadAttachment,
		readBlob:       o.ReadBlob,
		logger:         o.Logger,
	}
	if a.logger == nil {
		a.logger = slog.New(slog.DiscardHandler)
	}
	if a.http == nil {
		a.http = NewHTTPClient()
	}
	if a.getenv == nil {
		a.getenv = os.Getenv
	}
	if a.readFile == nil {
		a.readFile = os.ReadFile
	}
	return a
}

// NewHTTPClient returns a client for streams from a few hosts. It keeps many connections per
// host and has no timeout, since the context of a request bounds it. It follows no redirects,
// which would send the conversation to a host that nobody configured. It uses HTTPS_PROXY for
// https URLs, where the proxy sees only the host name. It uses no proxy for http URLs, because
// the proxy would see the key.
func NewHTTPClient() *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy = func(r *http.Request) (*url.URL, error) {
		if r.URL.Scheme != "https" {
			return nil, nil
		}
		return http.ProxyFromEnvironment(r)
	}
	transport.MaxIdleConns = 512
	transport.MaxIdleConnsPerHost = 256
	transport.IdleConnTimeout = 90 * time.Second
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
