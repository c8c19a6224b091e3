package gateway

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"golang.org/x/time/rate"
)

// clientOf returns the address of the connection. If that is a trusted proxy, it returns the last address
// in X-Forwarded-For that is not a trusted proxy. Each proxy appends the address of its client; earlier
// entries may be forged. Zero: a connection other than TCP.
func clientOf(r *http.Request, proxies []netip.Prefix) netip.Addr {
	client := parseAddress(r.RemoteAddr)
	forwarded := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, text := range slices.Backward(forwarded) {
		forwardedFor := parseAddress(strings.TrimSpace(text))
		isProxy := slices.ContainsFunc(proxies, func(p netip.Prefix) bool { return p.Contains(client) })
		if !isProxy || !forwardedFor.IsValid() {
			break
		}
		client = forwardedFor
	}
	return client
}

// parseAddress returns zero if the text is invalid. A port is optional.
func parseAddress(text string) netip.Addr {
	address, err := netip.ParseAddr(text)
	if err != nil {
		withPort, _ := netip.ParseAddrPort(text) // zero if invalid
		address = withPort.Addr()
	}
	return address.Unmap().WithZone("")
}

type rateLimiter struct {
	rate  rate.Limit
	burst int

	mu       sync.Mutex
	limiters map[netip.Prefix]*rate.Limiter
	sweepAt  int // number of limiters that triggers the next sweep
}

func newRateLimiter(options Options) *rateLimiter {
	return &rateLimiter{rate: rate.Limit(options.Rate), burst: options.Burst, limiters: map[netip.Prefix]*rate.Limiter{}}
}

func (l *rateLimiter) allow(client netip.Addr) bool {
	if l.rate < 0 {
		return true
	}
	prefix := clientPrefix(client)
	l.mu.Lock()
	defer l.mu.Unlock()
	limiter, ok := l.limiters[prefix]
	if !ok {
		l.sweep()
		limiter = rate.NewLimiter(l.rate, l.burst)
		l.limiters[prefix] = limiter
	}
	return limiter.Allow()
}

// sweep runs when the number of limiters has doubled, so its cost is amortized.
func (l *rateLimiter) sweep() {
	if len(l.limiters) < max(l.sweepAt, 1024) {
		return
	}
	for prefix, limiter := range l.limiters {
		if limiter.Tokens() >= float64(l.burst) {
			delete(l.limiters, prefix)
		}
	}
	l.sweepAt = 2 * len(l.limiters)
}

type streamLimiter struct {
	max, maxPerAddress int // negative: unlimited

	mu         sync.Mutex
	open       int
	perAddress map[netip.Prefix]int
}

func newStreamLimiter(options Options) *streamLimiter {
	return &streamLimiter{max: options.Streams, maxPerAddress: options.StreamsPerAddress, perAddress: map[netip.Prefix]int{}}
}

func (s *streamLimiter) acquire(client netip.Addr) (release func(), err error) {
	prefix := clientPrefix(client)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.maxPerAddress >= 0 && s.perAddress[prefix] >= s.maxPerAddress:
		return nil, problem(problemStreams, http.StatusTooManyRequests, "Too many streams",
			"an address may have %d open streams; close one first", s.maxPerAddress)
	case s.max >= 0 && s.open >= s.max:
		return nil, problem(problemStreams, http.StatusServiceUnavailable, "Too many streams", "%d are open; retry later", s.open)
	}
	s.open++
	s.perAddress[prefix]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.open--
		if s.perAddress[prefix]--; s.perAddress[prefix] == 0 {
			delete(s.perAddress, prefix)
		}
	}, nil
}

// clientPrefix returns the network that counts as one client: the /64 of an IPv6 address, or an IPv4 address.
func clientPrefix(client netip.Addr) netip.Prefix {
	bits := client.BitLen()
	if client.Is6() {
		bits = 64
	}
	prefix, _ := client.Prefix(bits) // bits is in range
	return prefix
}
