package config

import (
	"cmp"

	"github.com/seed-9ed7edd4/chronicle/internal/connect"
)

const fromProfile = "profile of the temporal command"

// Derived returns the address and the namespace of Temporal, and the URL and the token file of NATS, with which the
// program connects, for [Config.Print].
func (c *Connection) Derived(getenv func(string) string) (map[string]Value, error) {
	options, err := connect.Temporal{Address: c.Address, Namespace: c.Namespace, Profile: c.Profile}.Options()
	if err != nil {
		return nil, err
	}
	natsURL := cmp.Or(connect.NATSURL(c.NATSURL, getenv), "none")
	values := map[string]Value{
		"address":         {Value: options.HostPort},
		"namespace":       {Value: options.Namespace},
		"nats-url":        {Value: natsURL},
		"nats-token-file": {Value: connect.NATSAuth(c.NATSAuth, natsURL, getenv).TokenFile},
	}
	for flag, byDefault := range map[string]string{"address": connect.DefaultAddress, "namespace": "default"} {
		if v := values[flag].Value; v != byDefault {
			values[flag] = Value{v, fromProfile}
		}
	}
	return values, nil
}
