package llm

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/seed-9ed7edd4/chronicle/llm/baseurl"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// Options are what an [Adapter] needs from its surroundings. The zero value
// works.
type Options struct {
	// HTTPClient sends the requests; it should neither retry nor follow
	// redirects. Nil means [NewHTTPClient].
	HTTPClient *http.Client
	// Getenv looks up keys of the form env:NAME. Nil means [os.Getenv].
	Getenv func(string) string
	// ReadFile reads keys of the form file:/path. Nil means [os.ReadFile].
	ReadFile func(string) ([]byte, error)
	// Providers are configured beside the presets; one with the id of a preset
	// replaces it.
	Providers []Provider
	// AllowBaseURLs are the base URLs that contexts may name, with all below
	// them; see [baseurl.URL.Contains]. No key is ever sent there.
	AllowBaseURLs []baseurl.URL
	// AllowLoopback lets contexts name any base URL on this machine.
	AllowLoopback bool
	// Defaults is the provider of contexts that chose none.
	Defaults Defaults
	// ReadAttachment reads an attachment whose source is a file. It decides
	// which paths may be read. Nil means that such attachments are mentioned
	// to the model and not sent.
	ReadAttachment func(path string) ([]byte, error)
	// ReadBlob reads an attachment whose source is a blob that is referred to, by
	// its [event.Source.Ref], within [BlobTimeout]. Nil means that the model is
	// told that such attachments are not available.
	ReadBlob func(ctx context.Context, ref string) ([]byte, error)
	// Logger is told of attachments that could not be read. Nil means nobody is.
	Logger *slog.Logger
}

// BlobTimeout is how long a blob may take to be read: a store that does not
// answer is no reason for the request not to be made.
const BlobTimeout = 5 * time.Second

// Defaults are the provider of a worker: that of contexts that chose none, see
// [reducer.ProviderConfig.IsDefault]. A field that is empty leaves the choice
// to the context's initial config.
type Defaults struct {
	ProviderID string
	// BaseURL is also the URL of the provider for contexts that name the
	// provider without a URL of their own.
	BaseURL string
	Model   string
	// APIKeyRef is where the key for BaseURL is: env:NAME or file:/path. When
	// it is empty and BaseURL is not, no key is sent.
	APIKeyRef string
}

// DefaultsFromEnv reads the variables that the official OpenAI libraries read,
// OPENAI_API_KEY and OPENAI_BASE_URL, and OPENAI_MODEL. The key itself stays
// where it is.
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

// applyTo is the config of a context, with the defaults of the worker in place
// when the context chose nothing.
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

// Adapter finds and asks providers. It is safe for concurrent use.
type Adapter struct {
	http           *http.Client
	getenv         func(string) string
	readFile       func(string) ([]byte, error)
	providers      map[string]entry
	configured     []Provider
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

// NewHTTPClient returns a client for streams from few hosts: it keeps many
// connections per host, has no timeout of its own (the context of a request
// bounds it), and follows no redirect, which would send the conversation to a
// host that nobody configured. It uses the proxy of HTTPS_PROXY for https URLs,
// where the proxy sees only the host, and no proxy for http URLs, where it would
// see the key.
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
