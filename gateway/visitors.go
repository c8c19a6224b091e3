package gateway

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"golang.org/x/time/rate"
)

// clientOf is the address that a request comes from. Proxies add that of whoever
// asks them to X-Forwarded-For, at its end: so it is the last one that is no proxy of
// ours. What stands before it may be invented. It is the zero address on a socket
// that is no TCP.
func clientOf(r *http.Request, proxies []netip.Prefix) netip.Addr {
	client := parseAddress(r.RemoteAddr)
	forwarded := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, text := range slices.Backward(forwarded) {
		asker := parseAddress(strings.TrimSpace(text))
		isProxy := slices.ContainsFunc(proxies, func(p netip.Prefix) bool { return p.Contains(client) })
		if !isProxy || !asker.IsValid() {
			break
		}
		client = asker
	}
	return client
}

// parseAddress reads an address, with or without a port; zero if it is none.
func parseAddress(text string) netip.Addr {
	address, err := netip.ParseAddr(text)
	if err != nil {
		withPort, _ := netip.ParseAddrPort(text) // zero if it is none either
		address = withPort.Addr()
	}
	return address.Unmap().WithZone("")
}

// visitors bounds how often each client asks.
type visitors struct {
	rate  rate.Limit
	burst int

	mu       sync.Mutex
	limiters map[netip.Prefix]*rate.Limiter
	sweepAt  int // how many limiters are looked through for those that may go
}

func newVisitors(options Options) *visitors {
	return &visitors{rate: rate.Limit(options.Rate), burst: options.Burst, limiters: map[netip.Prefix]*rate.Limiter{}}
}

// admit reports whether a client may ask now.
func (v *visitors) admit(client netip.Addr) bool {
	if v.rate < 0 {
		return true
	}
	who := visitor(client)
	v.mu.Lock()
	defer v.mu.Unlock()
	limiter, ok := v.limiters[who]
	if !ok {
		v.sweep()
		limiter = rate.NewLimiter(v.rate, v.burst)
		v.limiters[who] = limiter
	}
	return limiter.Allow()
}

// sweep takes away limiters that are as good as new, each time when there are
// twice as many as were left the last time.
func (v *visitors) sweep() {
	if len(v.limiters) < max(v.sweepAt, 1024) {
		return
	}
	for who, limiter := range v.limiters {
		if limiter.Tokens() >= float64(v.burst) {
			delete(v.limiters, who)
		}
	}
	v.sweepAt = 2 * len(v.limiters)
}

// streams bounds how many are open.
type streams struct {
	most, mostPerAddress int // negative: any number

	mu   sync.Mutex
	open int
	of   map[netip.Prefix]int
}

func newStreams(options Options) *streams {
	return &streams{most: options.Streams, mostPerAddress: options.StreamsPerAddress, of: map[netip.Prefix]int{}}
}

// enter counts a stream of a client until it leaves. The error is that there are too
// many.
func (s *streams) enter(client netip.Addr) (leave func(), err error) {
	who := visitor(client)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.mostPerAddress >= 0 && s.of[who] >= s.mostPerAddress:
		return nil, problem("streams", http.StatusTooManyRequests, "Too many streams",
			"an address may have %d, close some", s.mostPerAddress)
	case s.most >= 0 && s.open >= s.most:
		return nil, problem("streams", http.StatusServiceUnavailable, "Too many streams", "there are %d, come back later", s.open)
	}
	s.open++
	s.of[who]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.open--
		if s.of[who]--; s.of[who] == 0 {
			delete(s.of, who)
		}
	}, nil
}

// visitor is who has an address. One client has a whole /64 of IPv6.
func visitor(client netip.Addr) netip.Prefix {
	bits := client.BitLen()
	if client.Is6() {
		bits = 64
	}
	who, _ := client.Prefix(bits) // it has so many bits
	return who
}
