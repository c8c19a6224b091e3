package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/netip"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
	"github.com/seed-9ed7edd4/chronicle/gateway/page"
	"github.com/seed-9ed7edd4/chronicle/terminal"
)

type serveOptions struct {
	*app
	listen string
	hosts  []string
	rate   float64
	// proxies are addresses and networks.
	proxies []string
	json    bool
}

func newServeCommand(a *app) *cobra.Command {
	o := serveOptions{app: a}
	command := &cobra.Command{
		Use:   "serve [flags]",
		Short: "Serve the contexts over HTTP",
		Long: `Serve the contexts of the namespace over HTTP, until Ctrl-C: as a page for
browsers at /, as JSON, as server-sent events and as JSON Patches;
GET /openapi.json describes it all.

There is no login: whoever reaches the address can read and write all contexts.
Keep it on this machine, or behind a proxy that knows who is who; name with
--host what clients call it then, and with --trust-proxy the proxy, or all clients
together have the rate of one.

It prints one line when it serves, "ready url=... temporal=... deltas=...", and
logs to standard error.

` + exitReference,
		Example: `  starter serve
  starter serve --listen 127.0.0.1:9000 --host chronicle.example --trust-proxy 127.0.0.1`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return runServe(command.Context(), o) },
	}
	flags := command.Flags()
	flags.StringVar(&o.listen, "listen", "127.0.0.1:8080", "where to serve, `HOST:PORT`; port 0 is any that is free")
	flags.StringArrayVar(&o.hosts, "host", nil,
		"`NAME` that clients reach it by, beside localhost and IP addresses; may be repeated")
	flags.Float64Var(&o.rate, "rate", 0,
		"`REQUESTS` per second that an address may make, four times as many at once; 0: 50; negative: any number")
	flags.StringArrayVar(&o.proxies, "trust-proxy", nil,
		"`ADDRESS` or network, like 10.0.0.0/8, of a proxy whose X-Forwarded-For says for whom it asks; may be repeated")
	flags.BoolVar(&o.json, "json", false, "print the line, and log, as JSON")
	return command
}

func runServe(ctx context.Context, o serveOptions) error {
	host, _, err := net.SplitHostPort(o.listen)
	if err != nil {
		return usagef("--listen %q: want HOST:PORT, like 127.0.0.1:8080", o.listen)
	}
	if math.IsNaN(o.rate) || math.IsInf(o.rate, 0) {
		return usagef("--rate %v: want a number like 50, or -1 for any number of requests", o.rate)
	}
	proxies, err := parseProxies(o.proxies)
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", o.listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%s is in use: end what serves there, or choose another port with --listen", o.listen)
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
		o.note("there is no login: whoever reaches %s can read and write all contexts", o.listen)
	}
	o.noteNotLive(c)
	if err := o.announce(c, listener); err != nil {
		return err
	}
	o.grace.Store(int64(gateway.DrainTimeout + grace))
	return gateway.New(c, gateway.Options{
		Page: page.Handler(), Hosts: o.hosts, Rate: o.rate, Proxies: proxies, Log: o.logger(),
	}).Serve(ctx, listener)
}

// parseProxies reads addresses and networks.
func parseProxies(texts []string) (proxies []netip.Prefix, err error) {
	for _, text := range texts {
		address, err := netip.ParseAddr(text)
		proxy := netip.PrefixFrom(address, address.BitLen())
		if err != nil {
			proxy, err = netip.ParsePrefix(text)
		}
		if err != nil {
			return nil, usagef("--trust-proxy %q: want an address or a network, like 127.0.0.1 or 10.0.0.0/8", text)
		}
		proxies = append(proxies, proxy)
	}
	return proxies, nil
}

// serving is the line that says so.
type serving struct {
	URL      string `json:"url"`
	Temporal string `json:"temporal"`
	Deltas   bool   `json:"deltas"`
}

// announce says where the gateway serves.
func (o serveOptions) announce(c client, listener net.Listener) error {
	s := serving{URL: "http://" + listener.Addr().String(), Temporal: event.Redact(o.address(), 0), Deltas: c.Live()}
	if o.json {
		return o.printJSON(s)
	}
	_, err := fmt.Fprintf(o.out, "ready url=%s temporal=%s deltas=%t\n", s.URL, s.Temporal, s.Deltas)
	return err
}

func (o serveOptions) logger() *slog.Logger {
	if o.json {
		return slog.New(slog.NewJSONHandler(terminal.NewJSONWriter(o.err), nil))
	}
	return slog.New(slog.NewTextHandler(o.err, nil))
}
