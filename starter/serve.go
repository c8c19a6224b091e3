package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/netip"
	"os"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
	"github.com/seed-9ed7edd4/chronicle/gateway/page"
	"github.com/seed-9ed7edd4/chronicle/internal/telemetry"
	"github.com/seed-9ed7edd4/chronicle/internal/terminal"
	"github.com/seed-9ed7edd4/chronicle/internal/version"
)

type serveOptions struct {
	*app
	listen string
	hosts  []string
	rate   float64
	// proxies are IP addresses and networks.
	proxies []string
	json    bool
	metrics string
}

func newServeCommand(a *app) *cobra.Command {
	o := serveOptions{app: a}
	command := &cobra.Command{
		Use:   "serve [flags]",
		Short: "Serve the contexts over HTTP, with a web page",
		Long: `Serve the contexts of the namespace over HTTP until Ctrl-C: as a web page at /,
and as JSON, server-sent events and JSON Patch, described at /openapi.json.

There is no authentication: anyone who can reach the address can read and write
all contexts. Serve on this machine only, or behind a proxy that authenticates
clients. Behind a proxy, set --host to the name that clients use and
--trust-proxy to the address of the proxy; otherwise all clients share one rate
limit.

When it accepts requests, the command prints one line,
"ready url=... temporal=... deltas=...". It logs to standard error.

` + exitReference,
		Example: `  starter serve
  starter serve --listen 127.0.0.1:9000 --host chronicle.example --trust-proxy 127.0.0.1`,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error { return runServe(command.Context(), o) },
	}
	flags := command.Flags()
	flags.StringVar(&o.listen, "listen", "127.0.0.1:8080", "address to serve on, `HOST:PORT`; port 0: any free port")
	flags.StringArrayVar(&o.hosts, "host", nil,
		"host `NAME` that clients may use besides localhost and IP addresses; may be repeated")
	flags.Float64Var(&o.rate, "rate", 0,
		"`REQUESTS` per second per client address, with bursts of four times as many; 0: 50; negative: unlimited")
	flags.StringArrayVar(&o.proxies, "trust-proxy", nil,
		"IP `ADDRESS` or network, like 10.0.0.0/8, of a proxy whose X-Forwarded-For is trusted; may be repeated")
	flags.StringVar(&o.metrics, "metrics", "", "serve metrics for Prometheus at http://`HOST:PORT`/metrics; port 0: any free port (default: none)")
	flags.BoolVar(&o.json, "json", false, "print the ready line and the log as JSON")
	return command
}

func runServe(ctx context.Context, o serveOptions) error {
	host, _, err := net.SplitHostPort(o.listen)
	if err != nil {
		return usagef("--listen %q: want HOST:PORT, like 127.0.0.1:8080", o.listen)
	}
	if math.IsNaN(o.rate) || math.IsInf(o.rate, 0) {
		return usagef("--rate %v: want a number like 50, or -1 for no limit", o.rate)
	}
	proxies, err := parseProxies(o.proxies)
	if err != nil {
		return err
	}
	exported, err := telemetry.Start(ctx, telemetry.Options{
		Service: "chronicle-gateway", Version: version.Build(), Listen: o.metrics, Getenv: os.Getenv,
	})
	if err != nil {
		return err
	}
	defer exported.Close()
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", o.listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("--listen %s: the address is in use (stop the program that uses it, or choose another port)", o.listen)
	}
	if err != nil {
		return fmt.Errorf("--listen %s: %w", o.listen, err)
	}
	defer listener.Close()
	c, err := o.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Shutdown()
	if address, err := netip.ParseAddr(host); host != "localhost" && (err != nil || !address.IsLoopback()) {
		o.note("warning: no authentication; anyone who can reach %s can read and write all contexts", o.listen)
	}
	o.noteNotLive(c)
	if err := o.announce(c, listener, exported); err != nil {
		return err
	}
	o.grace.Store(int64(gateway.DrainTimeout + grace))
	return gateway.New(c, gateway.Options{
		Page: page.Handler(), Hosts: o.hosts, Rate: o.rate, Proxies: proxies, Log: o.logger(), Meters: exported.Meters(),
	}).Serve(ctx, listener)
}

func parseProxies(texts []string) (proxies []netip.Prefix, err error) {
	for _, text := range texts {
		address, err := netip.ParseAddr(text)
		proxy := netip.PrefixFrom(address, address.BitLen())
		if err != nil {
			proxy, err = netip.ParsePrefix(text)
		}
		if err != nil {
			return nil, usagef("--trust-proxy %q: want an IP address or a network, like 127.0.0.1 or 10.0.0.0/8", text)
		}
		proxies = append(proxies, proxy)
	}
	return proxies, nil
}

type serving struct {
	URL      string `json:"url"`
	Metrics  string `json:"metrics,omitempty"`
	Temporal string `json:"temporal"`
	Deltas   bool   `json:"deltas"`
}

func (o serveOptions) announce(c contextClient, listener net.Listener, exported *telemetry.Telemetry) error {
	s := serving{URL: "http://" + listener.Addr().String(), Temporal: event.Redact(o.address(), 0), Deltas: c.Live()}
	rest := ""
	if address := exported.Address(); address != "" {
		s.Metrics = "http://" + address + "/metrics"
		rest = " metrics=" + s.Metrics
	}
	if o.json {
		return o.printJSON(s)
	}
	_, err := fmt.Fprintf(o.out, "ready url=%s temporal=%s deltas=%t%s\n", s.URL, s.Temporal, s.Deltas, rest)
	return err
}

func (o serveOptions) logger() *slog.Logger {
	if o.json {
		return slog.New(slog.NewJSONHandler(terminal.NewJSONWriter(o.err), nil))
	}
	return slog.New(slog.NewTextHandler(o.err, nil))
}
