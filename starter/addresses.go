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

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/stream"
)

func checkAddresses(c client.Config) error {
	if address, from := flagOrEnv("--address", c.Address, "TEMPORAL_ADDRESS"); address != "" && !isHostPort(address) {
		return fmt.Errorf("%s %q: want HOST:PORT, like 127.0.0.1:7233", from, event.Redact(address, 0))
	}
	servers, from := flagOrEnv("--nats-url", c.NATSURL, "NATS_URL")
	if servers == "" || servers == "none" {
		return nil
	}
	for server := range strings.SplitSeq(servers, ",") {
		if !isNATSURL(strings.TrimSpace(server)) {
			return fmt.Errorf("%s %q: want a URL like nats://127.0.0.1:4222, or none", from, stream.RedactURL(servers))
		}
	}
	return nil
}

func flagOrEnv(flag, value, variable string) (setting, from string) {
	if value != "" {
		return value, flag
	}
	return os.Getenv(variable), variable
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

// devBlobs is the blob store of a worker --dev that was started in this directory.
const devBlobs = ".chronicle/blobs"

// devBlobURL returns "" if the directory does not exist.
func devBlobURL() string {
	dir, err := filepath.Abs(filepath.FromSlash(devBlobs))
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
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}
