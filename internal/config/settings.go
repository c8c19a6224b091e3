package config

import (
	"strings"
	"time"

	"github.com/seed-9ed7edd4/chronicle/internal/connect"
	"github.com/seed-9ed7edd4/chronicle/internal/stream"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// Connection is the connection settings, which all programs have.
type Connection struct {
	Address, Namespace, Profile string
	NATSURL                     string
	NATSAuth                    stream.Auth
	BlobURL, TaskQueue          string
}

// Words are the parts of help texts that differ between programs.
type Words struct {
	Namespace, NATSURL, BlobURL, TaskQueue string
	// DefaultTaskQueue is the default of the flag; empty: the default of package client.
	DefaultTaskQueue string
}

// Table returns the settings at the top level of the file.
func (c *Connection) Table(words Words) *Table {
	t := newTable("")
	t.StringVar(&c.Address, "address", "", "address of Temporal, `HOST:PORT` (default: $TEMPORAL_ADDRESS, else the address in the profile, else 127.0.0.1:7233)")
	t.StringVar(&c.Namespace, "namespace", "", words.Namespace+` (default: $TEMPORAL_NAMESPACE, else the namespace in the profile, else "default")`)
	t.StringVar(&c.Profile, "profile", "", "`PROFILE` in the TOML configuration of the temporal command (default: $TEMPORAL_PROFILE, \"default\")")
	t.StringVar(&c.NATSURL, "nats-url", "", words.NATSURL+" (default: $NATS_URL, nats://127.0.0.1:4222)")
	t.redact["nats-url"] = stream.RedactURL
	for _, s := range c.NATSAuth.Settings() {
		usage := s.Usage
		if s.Env != "" {
			usage += " (default: $" + s.Env + ")"
			t.env[s.Flag] = s.Env
		}
		t.StringVar(s.Value, s.Flag, "", usage)
	}
	for _, flag := range []string{"nats-user", "nats-password-file", "nats-token-file", "nats-creds", "nats-nkey"} {
		t.alternatives[flag] = true
	}
	t.StringVar(&c.BlobURL, "blob-url", "", words.BlobURL)
	t.StringVar(&c.TaskQueue, "task-queue", words.DefaultTaskQueue, words.TaskQueue)
	t.env["address"], t.env["namespace"], t.env["profile"] = "TEMPORAL_ADDRESS", "TEMPORAL_NAMESPACE", "TEMPORAL_PROFILE"
	t.env["nats-url"], t.env["blob-url"] = "NATS_URL", "BLOB_URL"
	t.variables = []Variable{
		{Name: "TEMPORAL_API_KEY", Usage: "API key for Temporal", IsSecret: true},
		{Name: "TEMPORAL_CONFIG_FILE", Usage: "TOML configuration of the temporal command"},
		{Name: "TEMPORAL_*", Usage: "other settings of the temporal command"},
		{Name: "OTEL_*", Usage: "export by OTLP, see [Monitoring](#monitoring)"},
		{Name: "NATS_PASSWORD", Usage: "password of the NATS user", IsSecret: true},
		{Name: variableToken, Usage: "NATS token", IsSecret: true, value: &c.NATSAuth.Token},
	}
	return t
}

// variableToken is an alternative to the flags for authentication to NATS.
const variableToken = "NATS_TOKEN"

// WorkerWords are the help texts of a worker.
var WorkerWords = Words{
	Namespace: "Temporal `NAMESPACE`, created by --dev",
	NATSURL:   "`URLS` of NATS servers, separated by commas; \"none\": do not stream answers",
	BlobURL: "`URL` of the blob store for logs and large payloads: file:///DIR, s3://BUCKET, gs://BUCKET or azblob://CONTAINER; the same for all programs of a namespace " +
		"(default: $BLOB_URL, else the folder .chronicle/blobs; with --dev, the folder blobs in --data-dir)",
	TaskQueue:        "task `QUEUE` of the contexts to run",
	DefaultTaskQueue: wire.TaskQueue,
}

// ClientBlobs is the folder of the blob store that clients use by default if it exists.
const ClientBlobs = DefaultDataDir + "/blobs"

// ClientWords are the help texts of the gateway and the other clients.
var ClientWords = Words{
	Namespace: "Temporal `NAMESPACE`",
	NATSURL:   "`URL` of the NATS server that delivers live deltas; \"none\": no live deltas",
	BlobURL: "`URL` of the workers' blob store; \"none\": send at most 60 KiB and read only what Temporal holds " +
		"(default: $BLOB_URL, or " + ClientBlobs + " if it exists and Temporal runs on this machine)",
	TaskQueue: "task `QUEUE` of the workers that run new contexts (default \"" + wire.TaskQueue + "\")",
}

// Worker is the settings of a worker.
type Worker struct {
	ContinueAfter     int
	Only              string
	ProvidersFile     string
	AllowBaseURLs     []string
	AttachmentsDir    string
	ToolFetch         bool
	ToolFilesRoot     string
	Approve           []string
	MCPFile           string
	HooksFile         string
	Titles            string
	CachedContexts    int
	Failover          time.Duration
	IdleClose         time.Duration
	DrainTimeout      time.Duration
	JSON              bool
	LogLevel          Level
	Metrics           string
	DataDir           string
	TemporalPort      int
	UIPort            int
	NATSPort          int
	Untuned           bool
	OfflineTokenDelay time.Duration
}

// Defaults of a worker.
const (
	// DefaultDrainTimeout plus 10 s to hand requests back must be shorter than the grace period that
	// docker-compose.yml gives workers to stop.
	DefaultDrainTimeout   = 30 * time.Second
	DefaultDataDir        = connect.DefaultDataDir
	DefaultCachedContexts = 1000
	DefaultFailover       = 3 * time.Second
	DefaultIdleClose      = 24 * time.Hour
)

// Table returns the settings in the table [worker] of the file. The presets are the built-in providers.
func (w *Worker) Table(presets ...string) *Table {
	t := newTable("worker")
	t.IntVar(&w.ContinueAfter, "continue-as-new-after", 0, "number of history `EVENTS` after which a run continues as new, at least 50; 0: 4,096")
	t.StringVar(&w.Only, "only", "", "run only `KIND`: workflows or activities (default: both)")
	t.StringVar(&w.ProvidersFile, "providers", "", "TOML `FILE` of model providers, like examples/config/providers.toml (default: the presets "+
		strings.Join(presets, ", ")+")")
	t.StringArrayVar(&w.AllowBaseURLs, "allow-base-url", nil, "base `URL` that contexts may use without a key, with paths below it; may be repeated "+
		"(default: only those of the providers and, with --dev, those on this machine)")
	t.StringVar(&w.AttachmentsDir, "attachments-dir", "", "`DIRECTORY` from which attachments of type \"file\" are read (default: none)")
	t.BoolVar(&w.ToolFetch, "tool-fetch", false, "enable the tool fetch, which gets public web pages")
	t.StringVar(&w.ToolFilesRoot, "tool-files-root", "", "enable the tools list_files and read_file, which read this `DIRECTORY` (default: none)")
	t.StringArrayVar(&w.Approve, "approve", nil, "require an approval for calls of tools that match this `PATTERN`, like fetch or mcp:files/write_*, in all contexts; may be repeated "+
		"(default: only those that contexts name)")
	t.StringVar(&w.MCPFile, "mcp", "", "JSON `FILE` with the MCP servers whose tools contexts may name, like examples/config/mcp.json (default: none)")
	t.StringVar(&w.HooksFile, "hooks", "", "TOML `FILE` of webhooks that check requests and answers or receive events, like examples/config/hooks.toml (default: none)")
	t.StringVar(&w.Titles, "titles", "", "give each new context a title after its first answer, by this model, `PROVIDER/MODEL` (default: none)")
	t.IntVar(&w.CachedContexts, "cached-contexts", DefaultCachedContexts, "number of `CONTEXTS` in memory, at least 1; others are rebuilt from their history when they receive input")
	t.DurationVar(&w.Failover, "failover", DefaultFailover, "time after which another worker repeats the work of a dead one, at least 1s; heartbeats are sent every third of it")
	t.DurationVar(&w.IdleClose, "idle-close", DefaultIdleClose, "time without input after which a session ends; the next input starts another; 0: never")
	t.DurationVar(&w.DrainTimeout, "drain-timeout", DefaultDrainTimeout, "time for running answers to finish when the worker stops; another worker repeats the rest; 0: none, as with --dev")
	t.BoolVar(&w.JSON, "json", false, "write logs as JSON lines")
	t.level(&w.LogLevel)
	t.metrics(&w.Metrics)
	t.StringVar(&w.DataDir, "data-dir", DefaultDataDir, "data `DIRECTORY` of --dev, created if missing")
	t.IntVar(&w.TemporalPort, "temporal-port", 7233, "`PORT` of Temporal with --dev; 0: any free port")
	t.IntVar(&w.UIPort, "ui-port", 8233, "`PORT` of the Web UI with --dev; 0: any free port")
	t.IntVar(&w.NATSPort, "nats-port", 4222, "`PORT` of NATS with --dev; 0: any free port")
	t.BoolVar(&w.Untuned, "untuned", false, "with --dev, run Temporal with its default settings instead of the tuned ones")
	t.DurationVar(&w.OfflineTokenDelay, "offline-token-delay", 25*time.Millisecond, "delay between the tokens of the built-in stand-in for a model; 0: none")
	t.variables = []Variable{
		{Name: "OPENAI_API_KEY", Usage: "key of the default provider", IsSecret: true},
		{Name: "OPENAI_BASE_URL", Usage: "URL of the default provider; without OPENAI_API_KEY, no key is sent"},
		{Name: "OPENAI_MODEL", Usage: "model of contexts without a provider of their own"},
	}
	return t
}

func (t *Table) metrics(address *string) {
	t.StringVar(address, "metrics", "", "serve metrics for Prometheus at http://`HOST:PORT`/metrics; port 0: any free port (default: none)")
}

func (t *Table) level(level *Level) {
	t.Var(level, "log-level", "minimum `LEVEL` of log lines: debug, info, warn or error")
}

// Gateway is the settings of the gateway, starter serve.
type Gateway struct {
	Listen string
	// PublicURL is where browsers reach the page; "": at the host of each request.
	PublicURL string
	Hosts     []string
	Rate      float64
	Proxies   []string // IP addresses and networks
	Auth      []string // AuthNone alone, or some of the others
	Tokens    string
	OIDC      OIDC
	// ProxyHeaders and OIDC.Claims have the form subject=NAME, tenant=NAME or roles=NAME.
	ProxySecretFile string
	ProxyHeaders    []string
	Groups          []string // of the form GROUP=ROLE
	DefaultRoles    []string
	SessionKeyFile  string
	TLSCert, TLSKey string
	Audit           string
	Tenants         TenantLimits
	IndexDir        string
	Metrics         string
	LogLevel        Level
	JSON            bool
}

// TenantLimits are the limits of each tenant. 0: the default.
type TenantLimits struct {
	Rate                   float64
	Streams, Contexts, MiB int
}

// OIDC is the settings of an OpenID Connect provider.
type OIDC struct {
	Issuer, ClientID, ClientSecretFile string
	Claims                             []string
}

// Values of Gateway.Auth.
const (
	AuthTokens = "tokens"
	AuthOIDC   = "oidc"
	AuthProxy  = "proxy"
	AuthNone   = "none"
)

// Table returns the settings in the table [gateway] of the file.
func (g *Gateway) Table() *Table {
	t := newTable("gateway")
	t.StringVar(&g.Listen, "listen", "127.0.0.1:8080", "address to serve on, `HOST:PORT`; port 0: any free port")
	t.StringArrayVar(&g.Hosts, "host", nil,
		"host `NAME` that clients may use besides localhost and IP addresses; may be repeated")
	t.StringVar(&g.PublicURL, "public-url", "",
		"`URL` of the page for browsers, if a proxy serves it below a path, like https://example.com/chat/; its host needs no --host (default: the host of each request)")
	t.Float64Var(&g.Rate, "rate", 0,
		"`REQUESTS` per second per client address, with bursts of four times as many; 0: 50; negative: unlimited")
	t.StringArrayVar(&g.Proxies, "trust-proxy", nil,
		"IP `ADDRESS` or network, like 10.0.0.0/8, of a proxy whose X-Forwarded-For is trusted; may be repeated")
	t.StringArrayVar(&g.Auth, "auth", nil,
		"`METHOD` by which clients authenticate: tokens, oidc or proxy; may be repeated; none: anyone may do everything (default: none on this machine; beyond it, required)")
	t.StringVar(&g.Tokens, "tokens", DefaultDataDir+"/tokens.jsonl", "`FILE` of hashed tokens, which starter token changes")
	t.StringVar(&g.OIDC.Issuer, "oidc-issuer", "", "`URL` of the OpenID Connect provider")
	t.StringVar(&g.OIDC.ClientID, "oidc-client-id", "", "`ID` of the gateway at the provider, and the audience of the JWTs that it accepts")
	t.StringVar(&g.OIDC.ClientSecretFile, "oidc-client-secret-file", "", "`FILE` with the secret of this client (default: none, a public client)")
	t.StringArrayVar(&g.OIDC.Claims, "oidc-claim", nil,
		"`FIELD=CLAIM` with subject, tenant or roles, the groups of a person, as the field; may be repeated (default: subject=sub, roles=roles, no tenant)")
	t.StringVar(&g.ProxySecretFile, "proxy-secret-file", "", "`FILE` with the value of X-Chronicle-Proxy-Secret, by which the proxy proves itself")
	t.StringArrayVar(&g.ProxyHeaders, "proxy-header", nil,
		"`FIELD=HEADER` like --oidc-claim; may be repeated (default: subject=X-Forwarded-User, roles=X-Forwarded-Groups, no tenant)")
	t.StringArrayVar(&g.Groups, "group", nil,
		"`GROUP=ROLE`, the role of a group of provider or proxy: read, write, approve or admin; may be repeated (default: chronicle-read=read, chronicle-write=write, chronicle-approve=approve, chronicle-admin=admin)")
	t.StringArrayVar(&g.DefaultRoles, "default-role", nil,
		"`ROLE` of people for whom provider or proxy name none: read, write, approve or admin; may be repeated (default: none, who may do nothing)")
	t.StringVar(&g.SessionKeyFile, "session-key-file", "",
		"`FILE` with a random text of at least 32 bytes, which encrypts the cookies of the page and share links; the same for all gateways (default: random, people sign in after each restart and cannot share)")
	t.StringVar(&g.TLSCert, "tls-cert", "", "PEM `FILE` with the certificate chain for HTTPS; read again when it changes (default: none, HTTP)")
	t.StringVar(&g.TLSKey, "tls-key", "", "PEM `FILE` with the private key of the certificate")
	t.StringVar(&g.Audit, "audit", "", "append a JSON line for each request to `FILE`, a new one when it was renamed (default: none)")
	t.Float64Var(&g.Tenants.Rate, "tenant-rate", 0,
		"`REQUESTS` per second of each tenant, with bursts of four times as many; 0: ten times --rate; negative: unlimited")
	t.IntVar(&g.Tenants.Streams, "tenant-streams", 0, "open `STREAMS` of each tenant; 0: 5,000; negative: unlimited")
	t.IntVar(&g.Tenants.Contexts, "tenant-contexts", 0, "number of `CONTEXTS` of each tenant, also closed ones; 0: unlimited")
	t.IntVar(&g.Tenants.MiB, "tenant-storage", 0, "space of each tenant in the blob store in `MIB`; 0: unlimited")
	t.StringVar(&g.IndexDir, "index-dir", DefaultDataDir+"/index",
		"`DIRECTORY` of the index for the list and the search, which is built from the logs; if it cannot be used, a temporary one")
	t.metrics(&g.Metrics)
	t.level(&g.LogLevel)
	t.BoolVar(&g.JSON, "json", false, "print the ready line and the log as JSON")
	return t
}
