package egress_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/internal/egress"
)

const public = "93.184.215.14"

// network is a fake network in which every address leads to one listening server, so that a
// request that passes the checks arrives.
type network struct {
	server *httptest.Server
	// names are the addresses of a name, in the order of the lookups; the last one stays.
	names map[string][][]string
	// redirects are the targets of paths.
	redirects map[string]string

	mu              sync.Mutex
	lookups, dialed []string
	arrived         []string
}

func newNetwork(t *testing.T) *network {
	n := &network{names: map[string][][]string{}, redirects: map[string]string{}}
	n.names["public.example"] = [][]string{{public}}
	n.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.mu.Lock()
		n.arrived = append(n.arrived, r.Host+r.URL.Path)
		n.mu.Unlock()
		if target := n.redirects[r.URL.Path]; target != "" {
			w.Header().Set("Location", target)
			w.WriteHeader(http.StatusFound)
			return
		}
		fmt.Fprint(w, "hello")
	}))
	t.Cleanup(n.server.Close)
	return n
}

func (n *network) LookupNetIP(_ context.Context, network, host string) ([]netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lookups = append(n.lookups, host)
	answers := n.names[host]
	if len(answers) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	if len(answers) > 1 {
		n.names[host] = answers[1:]
	}
	var addresses []netip.Addr
	for _, text := range answers[0] {
		addresses = append(addresses, netip.MustParseAddr(text))
	}
	return addresses, nil
}

func (n *network) dial(ctx context.Context, network, address string) (net.Conn, error) {
	n.mu.Lock()
	n.dialed = append(n.dialed, address)
	n.mu.Unlock()
	return new(net.Dialer).DialContext(ctx, "tcp", n.server.Listener.Addr().String())
}

func (n *network) get(t *testing.T, url string) (string, error) {
	t.Helper()
	client := egress.NewClient(egress.Options{Resolver: n, Dial: n.dial})
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return string(body), nil
}

// blocked are URLs that must not be reached, by the bypass that they try. TestIsPublic has more addresses.
var blocked = []struct {
	name, url string
	// resolves is the answer for the host; other resolvers parse these hosts as addresses.
	resolves []string
}{
	{name: "loopback", url: "http://127.0.0.1/"},
	{name: "IPv6 loopback", url: "http://[::1]/"},
	{name: "unspecified address", url: "http://0.0.0.0/"},
	{name: "IPv6 unspecified address", url: "http://[::]/"},
	{name: "private address", url: "http://10.1.2.3/"},
	{name: "metadata server", url: "http://169.254.169.254/latest/meta-data"},
	{name: "IPv6 metadata server", url: "http://[fd00:ec2::254]/"},
	{name: "platform address of Azure", url: "http://168.63.129.16/"},
	{name: "IPv6 zone", url: "http://[fe80::1%25eth0]/"},
	{name: "zone of a public address", url: "http://[2606:2800:21f::1%25eth0]/"},
	{name: "IPv4-mapped loopback", url: "http://[::ffff:127.0.0.1]/"},
	{name: "IPv4-mapped loopback in hexadecimal", url: "http://[::ffff:7f00:1]/"},
	{name: "IPv4-compatible loopback", url: "http://[::127.0.0.1]/"},
	{name: "decimal address", url: "http://2130706433/", resolves: []string{"127.0.0.1"}},
	{name: "hexadecimal address", url: "http://0x7f000001/", resolves: []string{"127.0.0.1"}},
	{name: "octal address", url: "http://0177.0.0.1/", resolves: []string{"127.0.0.1"}},
	{name: "short address", url: "http://127.1/", resolves: []string{"127.0.0.1"}},
	{name: "zero", url: "http://0/", resolves: []string{"0.0.0.0"}},
	{name: "localhost", url: "http://localhost/", resolves: []string{"::1", "127.0.0.1"}},
	{name: "localhost with a dot", url: "http://localhost./", resolves: []string{"127.0.0.1"}},
	{name: "name of a private address", url: "http://intranet.example/", resolves: []string{"10.0.0.7"}},
	{name: "name of a mapped address", url: "http://mapped.example/", resolves: []string{"::ffff:192.168.0.1"}},
	{name: "name of a public and a private address", url: "http://both.example/", resolves: []string{public, "127.0.0.1"}},
	{name: "user name", url: "http://user@public.example/"},
	{name: "user name that looks like a host", url: "http://public.example@127.0.0.1/"},
	{name: "user name and password", url: "https://user:word@public.example/"},
	{name: "port of a mail server", url: "http://public.example:25/"},
	{name: "port of a database", url: "http://public.example:5432/"},
	{name: "another HTTP port", url: "http://public.example:8080/"},
	{name: "port zero", url: "http://public.example:0/"},
	{name: "port out of range", url: "http://public.example:65616/"},
	{name: "file", url: "file:///etc/passwd"},
	{name: "ftp", url: "ftp://public.example/"},
	{name: "gopher", url: "gopher://public.example:70/"},
	{name: "no host", url: "http:///path"},
	{name: "no scheme", url: "//public.example/"},
}

func TestBlockedURLsReachNoServer(t *testing.T) {
	for _, test := range blocked {
		t.Run(test.name, func(t *testing.T) {
			n := newNetwork(t)
			if test.resolves != nil {
				request, err := http.NewRequest(http.MethodGet, test.url, nil)
				require.NoError(t, err)
				n.names[request.URL.Hostname()] = [][]string{test.resolves}
			}
			_, err := n.get(t, test.url)
			require.ErrorIs(t, err, egress.ErrBlocked)
			require.Empty(t, n.dialed)
			require.Empty(t, n.arrived)
		})
	}
}

func TestRedirectsToBlockedURLsAreNotFollowed(t *testing.T) {
	for _, test := range blocked {
		if test.name == "no scheme" {
			continue // in a redirect it is relative to the scheme, and allowed
		}
		t.Run(test.name, func(t *testing.T) {
			n := newNetwork(t)
			n.redirects["/start"] = test.url
			if request, err := http.NewRequest(http.MethodGet, test.url, nil); err == nil && test.resolves != nil {
				n.names[request.URL.Hostname()] = [][]string{test.resolves}
			}
			_, err := n.get(t, "http://public.example/start")
			require.ErrorIs(t, err, egress.ErrBlocked)
			require.Equal(t, []string{public + ":80"}, n.dialed)
			require.Equal(t, []string{"public.example/start"}, n.arrived)
		})
	}
}

func TestTheCheckedAddressIsDialed(t *testing.T) {
	n := newNetwork(t)
	n.names["rebinding.example"] = [][]string{{public}, {"127.0.0.1"}}
	body, err := n.get(t, "http://rebinding.example/")
	require.NoError(t, err)
	require.Equal(t, "hello", body)
	require.Equal(t, []string{"rebinding.example"}, n.lookups)
	require.Equal(t, []string{public + ":80"}, n.dialed)
}

func TestANameThatRebindsBetweenRedirectsIsBlocked(t *testing.T) {
	n := newNetwork(t)
	n.names["rebinding.example"] = [][]string{{public}, {"127.0.0.1"}}
	n.redirects["/"] = "http://rebinding.example/internal"
	_, err := n.get(t, "http://rebinding.example/")
	require.ErrorIs(t, err, egress.ErrBlocked)
	require.Equal(t, []string{public + ":80"}, n.dialed)
	require.Equal(t, []string{"rebinding.example/"}, n.arrived)
}

func TestPublicURLsAreReached(t *testing.T) {
	for url, dialed := range map[string]string{
		"http://public.example":                 public + ":80",
		"http://public.example:80/":             public + ":80",
		"http://public.example:443/":            public + ":443",
		"http://" + public + "/":                public + ":80",
		"http://[::ffff:" + public + "]/":       public + ":80",
		"http://[2606:2800:21f:cb07:6820::]/":   "[2606:2800:21f:cb07:6820::]:80",
		"http://[64:ff9b::" + public + "]/page": "[64:ff9b::5db8:d70e]:80",
	} {
		t.Run(url, func(t *testing.T) {
			n := newNetwork(t)
			body, err := n.get(t, url)
			require.NoError(t, err)
			require.Equal(t, "hello", body)
			require.Equal(t, []string{dialed}, n.dialed)
		})
	}
}

func TestHTTPSIsDialedAtItsPort(t *testing.T) {
	n := newNetwork(t)
	_, err := n.get(t, "https://public.example/")
	require.Error(t, err) // the server has no TLS
	require.NotErrorIs(t, err, egress.ErrBlocked)
	require.Equal(t, []string{public + ":443"}, n.dialed)
}

func TestTheNextAddressIsTriedIfOneRefuses(t *testing.T) {
	n := newNetwork(t)
	n.names["public.example"] = [][]string{{"2606:2800:21f::1", public}}
	var tried []string
	client := egress.NewClient(egress.Options{Resolver: n, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		if tried = append(tried, address); len(tried) == 1 {
			return nil, &net.OpError{Op: "dial", Err: net.UnknownNetworkError("unreachable")}
		}
		return n.dial(ctx, network, address)
	}})
	response, err := client.Get("http://public.example/")
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, []string{"[2606:2800:21f::1]:80", public + ":80"}, tried)
}

func TestRedirectsAreBounded(t *testing.T) {
	n := newNetwork(t)
	for i := range 7 {
		n.redirects["/"+strconv.Itoa(i)] = "/" + strconv.Itoa(i+1)
	}
	_, err := n.get(t, "http://public.example/2") // five redirects
	require.NoError(t, err)
	_, err = n.get(t, "http://public.example/1")
	require.ErrorContains(t, err, "more than 5 redirects")
}

func TestProxiesOfTheEnvironmentAreNotUsed(t *testing.T) {
	n := newNetwork(t)
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	t.Setenv("http_proxy", "http://127.0.0.1:1")
	_, err := n.get(t, "http://public.example/")
	require.NoError(t, err)
	require.Equal(t, []string{public + ":80"}, n.dialed)
}

func TestTheSystemsResolverIsChecked(t *testing.T) {
	_, err := egress.NewClient(egress.Options{}).Get("http://localhost/")
	require.ErrorIs(t, err, egress.ErrBlocked)
}
