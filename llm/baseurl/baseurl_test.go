package baseurl_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/llm/baseurl"
)

func TestParse(t *testing.T) {
	const (
		scheme    = "does not begin with http:// or https://"
		character = "contains a character other than letters, digits and - . _ ~ : / + = ,"
		user      = "contains an @ (user names and passwords are not allowed)"
		query     = "contains a query or a fragment"
		percent   = "contains a percent-encoded character"
		noHost    = "host is missing or too long"
		notDNS    = "host is not a DNS name"
		notIPv4   = "IPv4 address is not four decimal numbers"
		notIPv6   = "host in brackets is not an IPv6 address"
		port      = "port is not a number from 1 to 65535"
		dots      = "dot segment in the path"
		empty     = "empty segment in the path"
	)
	tests := []struct {
		raw, canonical, problem string
	}{
		{raw: "https://api.openai.com/v1", canonical: "https://api.openai.com/v1"},
		{raw: "https://api.openai.com/v1/", canonical: "https://api.openai.com/v1"},
		{raw: "https://api.openai.com:443/v1", canonical: "https://api.openai.com/v1"},
		{raw: "https://api.openai.com:80/v1", canonical: "https://api.openai.com:80/v1"},
		{raw: "http://model:80", canonical: "http://model"},
		{raw: "http://model:8080", canonical: "http://model:8080"},
		{raw: "http://model/", canonical: "http://model"},
		{raw: "http://my_model-1.example/v1", canonical: "http://my_model-1.example/v1"},
		{raw: "http://127.0.0.1:8000/v1", canonical: "http://127.0.0.1:8000/v1"},
		{raw: "http://[::1]:8000/v1", canonical: "http://[::1]:8000/v1"},
		{raw: "http://[2001:db8::1]", canonical: "http://[2001:db8::1]"},
		{raw: "https://host/v1/projects/p-1/locations/eu,us/m:latest/V=1+2~", canonical: "https://host/v1/projects/p-1/locations/eu,us/m:latest/V=1+2~"},
		{raw: "https://host/...", canonical: "https://host/..."},
		{raw: "https://1host.example", canonical: "https://1host.example"},

		{raw: "", problem: scheme},
		{raw: "localhost:8080/v1", problem: scheme},
		{raw: "HTTP://host/v1", problem: scheme},
		{raw: "ftp://host", problem: scheme},
		{raw: "file:///etc/passwd", problem: scheme},
		{raw: "http:/host", problem: scheme},
		{raw: "//host/v1", problem: scheme},
		{raw: " https://host", problem: character},
		{raw: "https://host\n", problem: character},
		{raw: "https://host\t/v1", problem: character},
		{raw: "https://host\x00.example", problem: character},
		{raw: `https:\\host`, problem: character},
		{raw: `https://host\@evil.example`, problem: character},
		{raw: "https://host/v1;x", problem: character},
		{raw: "https://host/v1|x", problem: character},
		{raw: "https://h\u00f6st", problem: character},
		{raw: "https://host\uff0fevil.example", problem: character},
		{raw: "https://\u24d4xample.com", problem: character},
		{raw: "https://user@host/v1", problem: user},
		{raw: "https://user:pass@host/v1", problem: user},
		{raw: "https://@host/v1", problem: user},
		{raw: "https://api.openai.com/v1@evil.example", problem: user},
		{raw: "https://api.openai.com@evil.example", problem: user},
		{raw: "https://host/v1?key=x", problem: query},
		{raw: "https://host/v1?", problem: query},
		{raw: "https://host/v1#x", problem: query},
		{raw: "https://host#@evil.example", problem: query},
		{raw: "https://host/v1%2f..", problem: percent},
		{raw: "https://host/%2e%2e/admin", problem: percent},
		{raw: "https://%68ost", problem: percent},
		{raw: "http://[fe80::1%25eth0]", problem: percent},
		{raw: "https://", problem: noHost},
		{raw: "https:///v1", problem: noHost},
		{raw: "https://:8080", problem: noHost},
		{raw: "https://API.openai.com", problem: "host is not in lower case"},
		{raw: "https://host.", problem: notDNS},
		{raw: "https://.host", problem: notDNS},
		{raw: "https://a..b", problem: notDNS},
		{raw: "https://-a.example", problem: notDNS},
		{raw: "https://a~b", problem: notDNS},
		{raw: "https://a,b", problem: notDNS},
		{raw: "https://a]", problem: notDNS},
		{raw: "http://127.1", problem: notIPv4},
		{raw: "http://2130706433", problem: notIPv4},
		{raw: "http://0x7f000001", problem: notIPv4},
		{raw: "http://0x7f.0.0.1", problem: notIPv4},
		{raw: "http://0x7f.0.0.0x1", problem: notIPv4},
		{raw: "http://0177.0.0.1", problem: notIPv4},
		{raw: "http://127.0.0.01", problem: notIPv4},
		{raw: "http://127.0.0.256", problem: notIPv4},
		{raw: "http://1.2.3.4.5", problem: notIPv4},
		{raw: "http://example.0x", problem: notIPv4},
		{raw: "http://[::ffff:127.0.0.1]", problem: notIPv6},
		{raw: "http://[127.0.0.1]", problem: notIPv6},
		{raw: "http://[]", problem: notIPv6},
		{raw: "http://[::1", problem: "no closing bracket after the host"},
		{raw: "http://[::1]evil.example", problem: "text between the bracket of the host and the port"},
		{raw: "http://[0:0:0:0:0:0:0:1]", problem: "IPv6 address is not in the canonical form ::1"},
		{raw: "http://[2001:DB8::1]", problem: "IPv6 address is not in the canonical form 2001:db8::1"},
		{raw: "https://host:", problem: port},
		{raw: "https://host:0", problem: port},
		{raw: "https://host:0443", problem: port},
		{raw: "https://host:65536", problem: port},
		{raw: "https://host:80:81", problem: port},
		{raw: "https://host:+80", problem: port},
		{raw: "https://::1/v1", problem: noHost},
		{raw: "https://host/./v1", problem: dots},
		{raw: "https://host/v1/../admin", problem: dots},
		{raw: "https://host/v1/..", problem: dots},
		{raw: "https://host/v1/../", problem: dots},
		{raw: "https://host//", problem: empty},
		{raw: "https://host//v1", problem: empty},
		{raw: "https://host//evil.example/", problem: empty},
		{raw: "https://host/v1//", problem: empty},
		{raw: "https://host/" + strings.Repeat("a", 2048), problem: "too long (at most 2048 bytes)"},
	}
	for _, tt := range tests {
		t.Run(tt.raw, func(t *testing.T) {
			u, err := baseurl.Parse(tt.raw)
			if tt.problem != "" {
				require.EqualError(t, err, tt.problem)
				require.Zero(t, u)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.canonical, u.String())
			again, err := baseurl.Parse(u.String())
			require.NoError(t, err)
			require.Equal(t, u, again)
			// The HTTP client connects to the host that was validated.
			parsed, err := url.Parse(u.String())
			require.NoError(t, err)
			require.Equal(t, u.String(), parsed.String())
			require.Equal(t, u.Origin(), parsed.Scheme+"://"+parsed.Host)
		})
	}
}

func TestContains(t *testing.T) {
	tests := []struct {
		allowed, url string
		want         bool
	}{
		{"http://host:8000", "http://host:8000", true},
		{"http://host:8000", "http://host:8000/", true},
		{"http://host:8000", "http://host:8000/v1", true},
		{"http://host/v1", "http://host/v1", true},
		{"http://host/v1/", "http://host:80/v1", true},
		{"http://host/v1", "http://host/v1/beta", true},
		{"http://host/v1", "http://host/v10", false},
		{"http://host/v1", "http://host/V1", false},
		{"http://host/v1", "http://host", false},
		{"http://host/v1", "http://host/v2", false},
		{"http://host", "https://host", false},
		{"http://host", "https://host:80", false},
		{"http://host", "http://host:8080", false},
		{"http://host", "http://host.evil.example", false},
		{"http://host", "http://evil.host", false},
		{"http://127.0.0.1", "http://localhost", false},
	}
	for _, tt := range tests {
		require.Equal(t, tt.want, baseurl.MustParse(tt.allowed).Contains(baseurl.MustParse(tt.url)), "%s contains %s", tt.allowed, tt.url)
	}
	require.False(t, baseurl.URL{}.Contains(baseurl.URL{}))
	require.Panics(t, func() { baseurl.MustParse("host") })
}

func TestIsLoopback(t *testing.T) {
	for raw, want := range map[string]bool{
		"http://localhost:1/v1":     true,
		"http://127.0.0.1":          true,
		"http://127.1.2.3:8080":     true,
		"http://[::1]:8080":         true,
		"http://0.0.0.0":            false,
		"http://[::]":               false,
		"http://10.0.0.1":           false,
		"http://169.254.169.254":    false,
		"http://localhost.evil.com": false,
		"http://my-localhost":       false,
		"http://evil.localhost":     false,
	} {
		require.Equal(t, want, baseurl.MustParse(raw).IsLoopback(), raw)
	}
}
