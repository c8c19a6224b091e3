package llm

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"sync/atomic"
	"time"

	"github.com/seed-9ed7edd4/chronicle/llm/baseurl"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// Options configure an [Adapter]. The zero value is valid.
type Options struct {
	// HTTPClient should neither retry nor follow redirects. Nil: [NewHTTPClient].
	HTTPClient *http.Client
	Getenv     func(string) string          // for keys of the form env:NAME; nil: [os.Getenv]
	ReadFile   func(string) ([]byte, error) // for keys of the form file:/path; nil: from the disk
	// Providers are added to the presets. One with the id of a preset replaces its settings and URL.
	// Requests still follow the rules of the preset, except for those that apply only at the preset's own URL.
	Providers []Provider
	// PriceVersion of Providers, at most [event.MaxPriceVersionBytes]. Empty: a hash of the prices.
	PriceVersion string
	// AllowBaseURLs are base URLs that contexts may use, including paths below them. They get no key.
	AllowBaseURLs []baseurl.URL
	AllowLoopback bool     // contexts may use any base URL on this machine
	Defaults      Defaults // of contexts without a provider of their own
	// ReadAttachment reads a file if its path is allowed. Nil: such attachments become notes.
	ReadAttachment func(path string) ([]byte, error)
	// ReadBlob reads an [event.Source.Ref] within [BlobTimeout]. Nil: that of [Adapter.UseStore], which the workers of
	// contexts call; without it, such attachments become notes.
	ReadBlob func(ctx context.Context, ref string) ([]byte, error)
	Logger   *slog.Logger // for attachments that cannot be read; nil: discard
	// TraceContent adds the newest messages, up to 128 KiB, and the answer to the span of a request.
	// Each text is cut at 16 KiB, and strings that look like secrets are removed. A request has a span
	// if its ctx has one.
	TraceContent bool
}

// BlobTimeout bounds the time to read a blob, so that a slow store does not block a request.
const BlobTimeout = 5 * time.Second

// Defaults are the provider of contexts without one of their own, see
// [reducer.ProviderConfig.IsDefault]. Empty fields keep the value of the context's initial config.
type Defaults struct {
	ProviderID string
	// BaseURL also applies to contexts that name the provider without a URL.
	BaseURL string
	Model   string
	// APIKeyRef refers to the key for BaseURL or, without a BaseURL, for the preset: env:NAME or file:/path. If it is
	// empty, BaseURL gets no key, and a preset keeps its own.
	APIKeyRef string
}

// DefaultsFromEnv reads OPENAI_BASE_URL and OPENAI_MODEL, and refers to the key in OPENAI_API_KEY.
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

// Default returns the provider and the model of contexts without a provider of their own.
func (a *Adapter) Default() (providerID, model string) {
	cfg := a.current.Load().defaults.applyTo(reducer.Initial().Config.Primary)
	return cfg.ProviderID, cfg.Model
}

// Adapter finds providers and sends requests to them. It is safe for concurrent use.
type Adapter struct {
	shared
	getenv   func(string) string
	readFile func(string) ([]byte, error)
	current  atomic.Pointer[table]
}

// shared is what the targets of an adapter share.
type shared struct {
	http           *http.Client
	counter        *tokenCounter
	experience     *experience
	readAttachment func(string) ([]byte, error)
	readBlob       func(context.Context, string) ([]byte, error)
	logger         *slog.Logger
	traceContent   bool
}

// table is the immutable configuration of the providers.
type table struct {
	providers     map[string]entry
	configured    []Provider
	priceVersion  string
	allowBaseURLs []baseurl.URL
	allowLoopback bool
	defaults      Defaults
}

// Configure applies the fields Providers, PriceVersion, AllowBaseURLs, AllowLoopback and Defaults of the options, and
// ignores the other fields. Targets that [Adapter.Resolve] has returned do not change.
func (a *Adapter) Configure(o Options) {
	a.current.Store(&table{
		providers:     newTable(o.Defaults, o.Providers),
		configured:    o.Providers,
		priceVersion:  cmp.Or(o.PriceVersion, versionOf(o.Providers)),
		allowBaseURLs: o.AllowBaseURLs,
		allowLoopback: o.AllowLoopback,
		defaults:      o.Defaults,
	})
}

// New returns an adapter.
func New(o Options) *Adapter {
	a := &Adapter{
		shared: shared{
			http: o.HTTPClient, counter: newTokenCounter(), experience: &experience{},
			readAttachment: o.ReadAttachment, readBlob: o.ReadBlob, logger: o.Logger, traceContent: o.TraceContent,
		},
		getenv:   o.Getenv,
		readFile: o.ReadFile,
	}
	a.Configure(o)
	if a.logger == nil {
		a.logger = slog.New(slog.DiscardHandler)
	}
	if a.http == nil {
		a.http = NewHTTPClient()
	}
	if a.getenv == nil {
		a.getenv = os.Getenv
	}
	return a
}

// UseStore sets how [Options].ReadBlob reads attachments, unless it is set. Call it before the adapter is used.
func (a *Adapter) UseStore(read func(ctx context.Context, ref string) ([]byte, error)) {
	if a.readBlob == nil {
		a.readBlob = read
	}
}

// NewHTTPClient returns a client that keeps many idle connections per host. It has no timeout: the context bounds a
// request. It follows no redirects, which would send the conversation to a host that nobody configured. It uses
// HTTPS_PROXY for https URLs, and no proxy for http URLs, where the proxy would see the key.
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
