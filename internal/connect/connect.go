// Package connect resolves where programs connect to and how, and prepares a namespace for contexts. A flag
// overrides the environment variable, which overrides the TOML profile of the temporal command, which
// overrides the default.
package connect

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"

	"github.com/seed-9ed7edd4/chronicle/internal/stream"
)

const (
	DefaultAddress = "127.0.0.1:7233"
	DefaultNATSURL = "nats://127.0.0.1:4222"
	// DefaultDataDir is the data directory of a worker --dev.
	DefaultDataDir = ".chronicle"
)

// Temporal selects a Temporal server and namespace. Empty fields are taken from
// TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE and TEMPORAL_PROFILE, then from the profile.
type Temporal struct {
	Address, Namespace, Profile string
	Given                       *client.Options // replaces the environment and the profile; nil: they are read
}

// Options defaults to [DefaultAddress] and the namespace "default". It returns an error if the TOML
// file is malformed or lacks the profile; HostPort is set nevertheless.
func (t Temporal) Options() (options client.Options, err error) {
	if t.Given != nil {
		options = *t.Given
	} else {
		options, err = envconfig.LoadClientOptions(envconfig.LoadClientOptionsRequest{ConfigFileProfile: t.Profile})
		if err != nil {
			err = fmt.Errorf("load the configuration of the Temporal client: %w", err)
		}
	}
	options.HostPort = cmp.Or(t.Address, options.HostPort, DefaultAddress)
	options.Namespace = cmp.Or(t.Namespace, options.Namespace, client.DefaultNamespace)
	return options, err
}

// NATSURL returns url, or else NATS_URL, or else [DefaultNATSURL]. It returns "" for "none".
func NATSURL(url string, getenv func(string) string) string {
	if url = cmp.Or(url, getenv("NATS_URL"), DefaultNATSURL); url == "none" {
		return ""
	}
	return url
}

// NATSAuth adds the environment to auth. If neither they nor the URLs have a method of authentication and all
// servers are on this machine, it adds the token of a worker --dev that was started in this directory.
func NATSAuth(auth stream.Auth, urls string, getenv func(string) string) stream.Auth {
	auth = auth.WithEnv(getenv)
	if auth.IsSet() || !areLocal(urls) {
		return auth
	}
	file := filepath.Join(DefaultDataDir, stream.DevToken)
	if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() {
		auth.TokenFile = file
	}
	return auth
}

// areLocal reports whether all NATS servers are on this machine and no URL has a user or a token.
func areLocal(urls string) bool {
	for server := range strings.SplitSeq(urls, ",") {
		server = strings.TrimSpace(server)
		if !strings.Contains(server, "://") {
			server = "nats://" + server
		}
		u, err := url.Parse(server)
		if err != nil || u.User != nil || !IsLoopback(u.Hostname()) {
			return false
		}
	}
	return true
}

// Dialable returns the address of a listener as a program on this machine reaches it: localhost instead of all addresses.
func Dialable(address string) string {
	host, port, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		return net.JoinHostPort("localhost", port)
	}
	return address
}

// IsLoopback reports whether a host is this machine, by a loopback address or the name localhost.
func IsLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
