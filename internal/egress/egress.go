// Package egress makes HTTP requests to public addresses only, for URLs from untrusted sources
// such as models and pages. It never reaches the network of this machine.
//
//	client := egress.NewClient(egress.Options{})
//	response, err := client.Get("https://example.com")
//
// Guarantees:
//   - A connection is made only to an address for which [IsPublic] is true, on port 80 or 443. The
//     address that was checked is the address that is dialed, so a name that resolves to another
//     address in the meantime (DNS rebinding) reaches nothing.
//   - Each redirect is checked like the first URL.
//   - URLs with a user name, or a scheme other than http and https, are rejected.
//   - Neither cookies nor proxies of the environment are used. A proxy would connect to
//     addresses that are not checked.
package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// ErrBlocked reports a URL or an address to which no request is sent.
var ErrBlocked = errors.New("is blocked")

const (
	maxRedirects   = 5
	maxHeaderBytes = 64 << 10
	dialTimeout    = 10 * time.Second
)

var ports = []uint16{80, 443}

// Options configure a client.
type Options struct {
	// Resolver resolves names. Nil: that of the system.
	Resolver Resolver
	// Dial connects to an address of the form IP:PORT. Nil: a [net.Dialer].
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Resolver is implemented by [net.Resolver].
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// NewClient returns a client without a timeout. The context of a request bounds its time.
func NewClient(options Options) *http.Client {
	if options.Resolver == nil {
		options.Resolver = net.DefaultResolver
	}
	if options.Dial == nil {
		options.Dial = (&net.Dialer{Timeout: dialTimeout, KeepAlive: -1}).DialContext
	}
	return &http.Client{
		Transport: checked{&http.Transport{
			DialContext:            options.dial,
			DisableKeepAlives:      true,
			ForceAttemptHTTP2:      true,
			MaxResponseHeaderBytes: maxHeaderBytes,
			TLSHandshakeTimeout:    dialTimeout,
		}},
		CheckRedirect: func(_ *http.Request, via []*http.Request) error {
			if len(via) > maxRedirects {
				return fmt.Errorf("a chain of more than %d redirects %w", maxRedirects, ErrBlocked)
			}
			return nil
		},
	}
}

// checked is a transport that checks the URL of each request, including redirects.
type checked struct{ http.RoundTripper }

func (c checked) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := checkURL(r.URL); err != nil {
		return nil, err
	}
	return c.RoundTripper.RoundTrip(r)
}

// checkURL returns an error for a URL that is blocked whichever addresses its host has.
func checkURL(u *url.URL) error {
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("scheme %q %w (use http or https)", u.Scheme, ErrBlocked)
	case u.User != nil:
		return fmt.Errorf("a URL with a user name %w (remove the part before the @)", ErrBlocked)
	case u.Hostname() == "":
		return fmt.Errorf("a URL without a host %w", ErrBlocked)
	case u.Port() != "":
		return checkPort(u.Port())
	}
	return nil
}

func checkPort(port string) error {
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || !slices.Contains(ports, uint16(number)) {
		return fmt.Errorf("port %s %w (use 80 or 443)", port, ErrBlocked)
	}
	return nil
}

// dial resolves the host of an address, checks the addresses and connects to the first one that
// accepts the connection.
func (o Options) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if err := checkPort(port); err != nil {
		return nil, err
	}
	addresses, err := o.resolve(ctx, host)
	if err != nil {
		return nil, err
	}
	// A single address that is not public blocks the name: it belongs to a private network.
	for _, found := range addresses {
		if !IsPublic(found) {
			return nil, fmt.Errorf("host %s %w: %s is not a public address", host, ErrBlocked, found)
		}
	}
	var failures []error
	for _, found := range addresses {
		conn, err := o.Dial(ctx, network, net.JoinHostPort(found.Unmap().String(), port))
		if err == nil {
			return conn, nil
		}
		failures = append(failures, err)
	}
	return nil, errors.Join(failures...)
}

func (o Options) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if literal, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{literal}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	addresses, err := o.Resolver.LookupNetIP(ctx, "ip", host)
	if err == nil && len(addresses) == 0 {
		err = fmt.Errorf("host %s has no address", host)
	}
	return addresses, err
}
