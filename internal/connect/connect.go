// Package connect resolves where programs connect to and how. A flag overrides the
// environment variable, which overrides the TOML profile of the temporal command, which
// overrides the default.
package connect

import (
	"cmp"
	"fmt"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
)

const (
	DefaultAddress = "127.0.0.1:7233"
	DefaultNATSURL = "nats://127.0.0.1:4222"
)

// Temporal selects a Temporal server and namespace. Empty fields are taken from
// TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE and TEMPORAL_PROFILE, then from the profile.
type Temporal struct {
	Address, Namespace, Profile string
}

// Options defaults to [DefaultAddress] and the namespace "default". It returns an error if the TOML
// file is malformed or lacks the profile; HostPort is set nevertheless.
func (t Temporal) Options() (client.Options, error) {
	options, err := envconfig.LoadClientOptions(envconfig.LoadClientOptionsRequest{ConfigFileProfile: t.Profile})
	if err != nil {
		err = fmt.Errorf("load the configuration of the Temporal client: %w", err)
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
