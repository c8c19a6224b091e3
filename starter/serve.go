package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
	"github.com/seed-9ed7edd4/chronicle/gateway/a2a"
	"github.com/seed-9ed7edd4/chronicle/gateway/agui"
	"github.com/seed-9ed7edd4/chronicle/gateway/aisdk"
	"github.com/seed-9ed7edd4/chronicle/gateway/openai"
	"github.com/seed-9ed7edd4/chronicle/gateway/page"
	"github.com/seed-9ed7edd4/chronicle/internal/config"
	"github.com/seed-9ed7edd4/chronicle/internal/connect"
	"github.com/seed-9ed7edd4/chronicle/internal/exit"
	"github.com/seed-9ed7edd4/chronicle/internal/gc"
	"github.com/seed-9ed7edd4/chronicle/internal/logging"
	"github.com/seed-9ed7edd4/chronicle/internal/telemetry"
	"github.com/seed-9ed7edd4/chronicle/internal/version"
)

func newServeCommand(a *app, flags *pflag.FlagSet) *cobra.Command {
	isCheck := false
	command := &cobra.Command{
		Use:   "serve [flags]",
		Short: "Serve the contexts over HTTP, with a web page",
		Long: `Serve the contexts of the namespace over HTTP until Ctrl-C: as a web page at /,
as JSON, server-sent events and JSON Patch, described at /openapi.json, and to
clients of OpenAI's API at /v1/.

On this machine, clients need no authentication. To serve other machines, set
--auth, --host to the name that clients use, and --tls-cert and --tls-key. Make
tokens with "starter token". Behind a proxy, set --trust-proxy to its address;
otherwise all clients share one rate limit.

When it accepts requests, the command prints one line,
"ready url=... temporal=... deltas=...". It logs to standard error. On SIGHUP, it
reads the file of --config again and applies the log level.

With --check, do not serve: ask the gateway at --listen whether it is ready, and
exit with 0 if it is. Use it as the health check of the container.`,
		Example: `  starter serve
  starter serve --listen :443 --host chronicle.example --auth tokens --tls-cert cert.pem --tls-key key.pem
  starter serve --listen 127.0.0.1:9000 --host chronicle.example --trust-proxy 127.0.0.1`,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			proxies, err := a.checkGateway()
			switch {
			case err != nil:
				return err
			case isCheck:
				return a.checkReady(command.Context())
			}
			return a.runServe(command.Context(), proxies)
		},
	}
	command.Flags().AddFlagSet(flags)
	command.Flags().BoolVar(&isCheck, "check", false, "report by exit code whether the gateway at --listen is ready")
	return command
}

// checkGateway validates the settings of the gateway, and returns the proxies.
func (a *app) checkGateway() ([]netip.Prefix, error) {
	o, c := a.gateway, a.config
	if err := c.CheckListen("listen", o.Listen, "127.0.0.1:8080"); err != nil {
		return nil, exit.UsageError{Err: err}
	}
	if o.Metrics != "" {
		if err := c.CheckListen("metrics", o.Metrics, "127.0.0.1:9464"); err != nil {
			return nil, exit.UsageError{Err: err}
		}
	}
	for flag, rate := range map[string]float64{"rate": o.Rate, "tenant-rate": o.Tenants.Rate} {
		if math.IsNaN(rate) || math.IsInf(rate, 0) {
			return nil, usagef("%s %v: want a number like 50, or -1 for no limit", c.Label(flag), rate)
		}
	}
	for _, host := range o.Hosts {
		if !hostName.MatchString(host) {
			return nil, usagef("%s %q: want a name like chronicle.example", c.Label("host"), host)
		}
	}
	if o.PublicURL != "" && !isPublicURL(o.PublicURL) {
		return nil, usagef("%s %q: want a URL like https://example.com/chat/", c.Label("public-url"), o.PublicURL)
	}
	if err := a.checkAuth(); err != nil {
		return nil, err
	}
	return a.proxies()
}

var hostName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*(:[0-9]+)?$`)

func isPublicURL(text string) bool {
	public, err := url.Parse(text)
	return err == nil && slices.Contains([]string{"http", "https"}, public.Scheme) && public.Host != "" && public.User == nil &&
		public.RawQuery == "" && !public.ForceQuery && public.Fragment == ""
}

// publicPath returns the path of a public URL without a slash at its end.
func publicPath(text string) string {
	public, _ := url.Parse(text) // it is valid
	return strings.TrimSuffix(public.EscapedPath(), "/")
}

func (a *app) runServe(ctx context.Context, proxies []netip.Prefix) error {
	if err := a.checkAccess(); err != nil {
		return err
	}
	gc.Relax(os.Getenv)
	o := a.gateway
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	level := zap.NewAtomicLevelAt(o.LogLevel.Zap())
	log := logging.New(a.err, o.JSON, level)
	defer log.Sync()
	a.log = log
	config.OnHangup(ctx, func() { a.reload(level, log) }, stop)
	exported, err := telemetry.Start(ctx, telemetry.Options{
		Service: "chronicle-gateway", Version: version.Build(), Listen: o.Metrics, ListenLabel: a.config.Label("metrics"), Getenv: os.Getenv,
		OnError: func(err error) { log.Warn("cannot export metrics or traces", zap.Error(err)) },
	})
	if err != nil {
		return err
	}
	defer func() {
		if err := exported.Close(); err != nil {
			log.Warn("cannot export the last metrics and traces", zap.Error(err))
		}
	}()
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", o.Listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%s %s: the address is in use (stop the program that uses it, or choose another port)", a.config.Label("listen"), o.Listen)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w (choose an address of this machine and a port that you may use, like 127.0.0.1:8080)",
			a.config.Label("listen"), o.Listen, err)
	}
	defer listener.Close()
	isBearer := slices.Contains(o.Auth, config.AuthTokens) || slices.Contains(o.Auth, config.AuthOIDC)
	agent := a2a.Options{PublicURL: o.PublicURL, Version: version.Build(), IsBearer: isBearer}
	options := gateway.Options{
		Protocols: append(a2a.Protocols(agent), openai.Protocol(), aisdk.Protocol(), agui.Protocol()),
		Page:      page.Handler(), IndexDir: o.IndexDir, Hosts: a.hosts(), Rate: o.Rate, Proxies: proxies,
		PublicPath: publicPath(o.PublicURL),
		TenantRate: o.Tenants.Rate, StreamsPerTenant: o.Tenants.Streams, TenantContexts: o.Tenants.Contexts, TenantBytes: min(int64(o.Tenants.MiB), math.MaxInt64>>20) << 20,
		Meters: exported.Meters(), Tracers: exported.Tracers(),
		Log: logging.Structured(log, "", zap.DebugLevel),
	}
	closeAudit, err := a.secure(ctx, &options, log)
	if err != nil {
		return err
	}
	defer closeAudit()
	served, err := a.withTLS(listener, log)
	if err != nil {
		return err
	}
	a.tracers = exported.Tracers()
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	a.warnAboutAccess(log)
	if !c.Live() {
		log.Warn("no live deltas (see --nats-url): each answer appears when it is complete", zap.Error(c.LiveError()))
	}
	log.Info("started", zap.String("version", version.Build()))
	defer log.Info("stopped")
	if err := a.announceGateway(c, listener, exported); err != nil {
		return err
	}
	a.grace.Store(int64(2 * gateway.DrainTimeout)) // Shutdown waits 5 s for connections that browsers open in advance
	return gateway.New(c, options).Serve(ctx, served)
}

func (a *app) proxies() (proxies []netip.Prefix, err error) {
	for _, text := range a.gateway.Proxies {
		address, err := netip.ParseAddr(text)
		proxy := netip.PrefixFrom(address, address.BitLen())
		if err != nil {
			proxy, err = netip.ParsePrefix(text)
		}
		if err != nil {
			return nil, usagef("%s %q: want an IP address or a network, like 127.0.0.1 or 10.0.0.0/8", a.config.Label("trust-proxy"), text)
		}
		proxies = append(proxies, proxy)
	}
	return proxies, nil
}

// hosts returns the names that clients may use.
func (a *app) hosts() []string {
	hosts := slices.Clone(a.gateway.Hosts)
	if public, err := url.Parse(a.gateway.PublicURL); err == nil && public.Host != "" {
		hosts = append(hosts, public.Hostname())
	}
	return hosts
}

type serving struct {
	URL      string `json:"url"`
	Metrics  string `json:"metrics,omitempty"`
	Temporal string `json:"temporal"`
	Deltas   bool   `json:"deltas"`
}

func (a *app) announceGateway(c contextClient, listener net.Listener, exported *telemetry.Telemetry) error {
	scheme := "http://"
	if a.gateway.TLSCert != "" {
		scheme = "https://"
	}
	at := connect.Dialable(listener.Addr().String())
	if port, isLocal := strings.CutPrefix(at, "localhost:"); isLocal && len(a.hosts()) > 0 {
		name, _, _ := strings.Cut(a.hosts()[0], ":")
		at = net.JoinHostPort(name, port)
	}
	s := serving{URL: scheme + at, Temporal: event.Redact(a.address(), 0), Deltas: c.Live()}
	rest := ""
	if address := exported.Address(); address != "" {
		s.Metrics = "http://" + connect.Dialable(address) + "/metrics"
		rest = " metrics=" + s.Metrics
	}
	if a.gateway.JSON {
		return a.printJSON(s)
	}
	_, err := fmt.Fprintf(a.out, "ready url=%s temporal=%s deltas=%t%s\n", s.URL, s.Temporal, s.Deltas, rest)
	return err
}

// reload reads the configuration again and applies the log level.
func (a *app) reload(level zap.AtomicLevel, log *zap.Logger) {
	if path, _ := a.config.Text(); path == "" {
		log.Warn("there is no configuration file to reload (set --config and restart)")
		return
	}
	var connection config.Connection
	var gateway config.Gateway
	next, err := a.config.Reload(os.Getenv, connection.Table(config.ClientWords), gateway.Table())
	if err != nil {
		log.Error("the configuration was not reloaded and stays as it was", zap.Error(err))
		return
	}
	changed := slices.DeleteFunc(a.config.Differences(next), func(key string) bool {
		return key == "gateway.log_level" || slices.Contains(config.Parts, key)
	})
	// The lower of the two levels applies to this line, so that it appears if either includes info.
	level.SetLevel(min(level.Level(), gateway.LogLevel.Zap()))
	log.Info("reloaded the configuration", zap.Stringer("log_level", gateway.LogLevel.Zap()))
	level.SetLevel(gateway.LogLevel.Zap())
	if len(changed) > 0 {
		log.Warn("some changed settings take effect after a restart", zap.Strings("settings", changed))
	}
}
