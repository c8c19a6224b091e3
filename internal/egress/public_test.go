package egress_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/internal/egress"
)

func TestIsPublic(t *testing.T) {
	for text, want := range map[string]bool{
		"1.1.1.1":                  true,
		"8.8.8.8":                  true,
		"9.255.255.255":            true,
		"11.0.0.0":                 true,
		"100.63.255.255":           true,
		"100.128.0.0":              true,
		"172.15.255.255":           true,
		"172.32.0.0":               true,
		"223.255.255.255":          true,
		"2606:4700:4700::1111":     true,
		"2001:4860:4860::8888":     true,
		"::ffff:1.1.1.1":           true,
		"64:ff9b::1.1.1.1":         true,
		"0.0.0.1":                  false,
		"10.255.255.255":           false,
		"100.64.0.0":               false,
		"127.0.0.1":                false,
		"169.254.0.1":              false,
		"172.31.255.255":           false,
		"192.0.0.192":              false,
		"192.0.2.1":                false,
		"192.168.255.255":          false,
		"198.19.255.255":           false,
		"203.0.113.9":              false,
		"224.0.0.0":                false,
		"240.0.0.1":                false,
		"255.255.255.255":          false,
		"::":                       false,
		"::1":                      false,
		"::ffff:169.254.169.254":   false,
		"64:ff9b::169.254.169.254": false,
		"64:ff9b:1::1":             false,
		"100::1":                   false,
		"2001::1":                  false,
		"2001:db8::1":              false,
		"2002:7f00:1::1":           false,
		"3fff::1":                  false,
		"4000::1":                  false,
		"fc00::1":                  false,
		"fd12::1":                  false,
		"fe80::1":                  false,
		"fec0::1":                  false,
		"ff02::1":                  false,
	} {
		require.Equal(t, want, egress.IsPublic(netip.MustParseAddr(text)), text)
	}
	require.False(t, egress.IsPublic(netip.Addr{}))
	require.False(t, egress.IsPublic(netip.MustParseAddr("2606:4700::1%eth0")))
}
