package egress

import (
	"net/netip"
	"slices"
)

// special are the ranges of IPv4 and of globalUnicast that are not public: those that the IANA
// registries of special-purpose addresses list as not globally reachable, multicast, tunnels, and an address
// that a cloud uses internally.
var special = prefixes(
	"0.0.0.0/8",        // this network
	"10.0.0.0/8",       // private
	"100.64.0.0/10",    // carrier-grade NAT, used inside clouds
	"127.0.0.0/8",      // loopback
	"168.63.129.16/32", // the platform of Azure, reachable from its machines
	"169.254.0.0/16",   // link-local, with the metadata servers of clouds
	"172.16.0.0/12",    // private
	"192.0.0.0/24",     // protocol assignments
	"192.0.2.0/24",     // documentation
	"192.88.99.0/24",   // 6to4 relays
	"192.168.0.0/16",   // private
	"198.18.0.0/15",    // benchmarks
	"198.51.100.0/24",  // documentation
	"203.0.113.0/24",   // documentation
	"224.0.0.0/3",      // multicast, reserved and broadcast
	"2001::/23",        // protocol assignments, with Teredo tunnels
	"2001:db8::/32",    // documentation
	"2002::/16",        // 6to4 tunnels
	"3fff::/20",        // documentation
)

var (
	// globalUnicast is the range from which IPv6 addresses are assigned.
	globalUnicast = netip.MustParsePrefix("2000::/3")
	// nat64 contains IPv4 addresses in its last four bytes.
	nat64 = netip.MustParsePrefix("64:ff9b::/96")
)

func prefixes(texts ...string) (parsed []netip.Prefix) {
	for _, text := range texts {
		parsed = append(parsed, netip.MustParsePrefix(text))
	}
	return parsed
}

// IsPublic reports whether an address belongs to the public Internet. Private, loopback,
// link-local, multicast and reserved addresses do not, nor do IPv6 forms of such IPv4 addresses.
func IsPublic(address netip.Addr) bool {
	if !address.IsValid() || address.Zone() != "" {
		return false
	}
	address = address.Unmap()
	if nat64.Contains(address) {
		bytes := address.As16()
		return IsPublic(netip.AddrFrom4([4]byte(bytes[12:])))
	}
	if address.Is6() && !globalUnicast.Contains(address) {
		return false
	}
	return !slices.ContainsFunc(special, func(p netip.Prefix) bool { return p.Contains(address) })
}
