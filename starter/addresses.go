package main

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/config"
	"github.com/seed-9ed7edd4/chronicle/internal/connect"
	"github.com/seed-9ed7edd4/chronicle/internal/stream"
)

func (a *app) checkAddresses() error {
	c := a.connection
	if c.Address != "" && !isHostPort(c.Address) {
		return fmt.Errorf("%s %q: want HOST:PORT, like 127.0.0.1:7233", a.config.Label("address"), event.Redact(c.Address, 0))
	}
	if c.NATSURL == "" || c.NATSURL == "none" {
		return nil
	}
	for server := range strings.SplitSeq(c.NATSURL, ",") {
		if !isNATSURL(strings.TrimSpace(server)) {
			return fmt.Errorf("%s %q: want a URL like nats://127.0.0.1:4222, or none", a.config.Label("nats-url"), stream.RedactURL(c.NATSURL))
		}
	}
	return nil
}

func isHostPort(address string) bool {
	// An address may begin with the scheme of a gRPC resolver, as in dns:///temporal:7233.
	host, port, err := net.SplitHostPort(address[strings.LastIndexByte(address, '/')+1:])
	number, notNumber := strconv.ParseUint(port, 10, 16)
	return err == nil && host != "" && notNumber == nil && number > 0 && !strings.ContainsAny(host, " \t")
}

func isNATSURL(server string) bool {
	if !strings.Contains(server, "://") {
		server = "nats://" + server
	}
	u, err := url.Parse(server)
	return err == nil && u.Hostname() != "" && slices.Contains([]string{"nats", "tls", "ws", "wss"}, u.Scheme)
}

// devBlobURL returns the blob store of a worker --dev that was started in this directory; "" if there is
// none.
func devBlobURL() string {
	dir, err := filepath.Abs(filepath.FromSlash(config.ClientBlobs))
	if err != nil {
		return ""
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return ""
	}
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(dir)}).String()
}

func (a *app) isLocal() bool {
	host, _, err := net.SplitHostPort(a.address())
	return err == nil && connect.IsLoopback(host)
}
