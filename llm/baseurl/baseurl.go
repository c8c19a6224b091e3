// Package baseurl parses base URLs of model servers strictly and compares them.
//
// Each URL has one canonical form, which is the one that is compared and that requests are sent to. Everything that
// parsers may interpret differently is rejected: user names, queries, percent signs, dot segments,
// empty segments, upper-case hosts, and addresses in non-canonical form.
package baseurl

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

const maxBytes = 2048

// URL is a base URL in canonical form, comparable with ==. The zero value is no URL.
type URL struct {
	scheme string
	host   string // in lower case, with brackets around an IPv6 address
	port   string // never empty
	path   string // "" or "/a/b", without a slash at the end
}

// Parse parses a base URL such as https://api.openai.com/v1. It removes one trailing slash and
// the default port of the scheme. Errors omit the URL, which may contain a secret.
func Parse(raw string) (URL, error) {
	var u URL
	if len(raw) > maxBytes {
		return URL{}, fmt.Errorf("too long (at most %d bytes)", maxBytes)
	}
	if err := checkCharacters(raw); err != nil {
		return URL{}, err
	}
	rest, found := raw, false
	for _, scheme := range []string{"http", "https"} {
		if rest, found = strings.CutPrefix(raw, scheme+"://"); found {
			u.scheme = scheme
			break
		}
	}
	if !found {
		return URL{}, errors.New("does not begin with http:// or https://")
	}
	authority, path, hasPath := strings.Cut(rest, "/")
	var err error
	if u.host, u.port, err = parseAuthority(authority, u.scheme); err != nil {
		return URL{}, err
	}
	if hasPath && path != "" {
		path = strings.TrimSuffix(path, "/")
		for segment := range strings.SplitSeq(path, "/") {
			switch segment {
			case "":
				return URL{}, errors.New("empty segment in the path")
			case ".", "..":
				return URL{}, errors.New("dot segment in the path")
			}
		}
		u.path = "/" + path
	}
	return u, nil
}

// MustParse is [Parse] for a valid URL. It panics on an error.
func MustParse(raw string) URL {
	u, err := Parse(raw)
	if err != nil {
		panic(fmt.Sprintf("base URL %q: %v", raw, err))
	}
	return u
}

func checkCharacters(raw string) error {
	for _, c := range []byte(raw) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("-._~:/+=,[]", c) >= 0:
		case c == '@':
			return errors.New("contains an @ (user names and passwords are not allowed)")
		case c == '?' || c == '#':
			return errors.New("contains a query or a fragment")
		case c == '%':
			return errors.New("contains a percent-encoded character")
		default:
			return errors.New("contains a character other than letters, digits and - . _ ~ : / + = ,")
		}
	}
	return nil
}

var (
	// hostName matches a DNS name; names of containers may contain underscores.
	hostName = regexp.MustCompile(`^[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*$`)
	// numberLike matches a last label that some resolvers parse as part of an IPv4 address.
	numberLike = regexp.MustCompile(`(^|\.)([0-9]+|0x[0-9a-f]*)$`)
)

func parseAuthority(authority, scheme string) (host, port string, err error) {
	host, port, hasPort := authority, "", false
	if strings.HasPrefix(authority, "[") {
		end := strings.IndexByte(authority, ']')
		if end < 0 {
			return "", "", errors.New("no closing bracket after the host")
		}
		host = authority[:end+1]
		switch rest := authority[end+1:]; {
		case rest == "":
		case rest[0] == ':':
			port, hasPort = rest[1:], true
		default:
			return "", "", errors.New("text between the bracket of the host and the port")
		}
	} else {
		host, port, hasPort = strings.Cut(authority, ":")
	}
	if err := checkHost(host); err != nil {
		return "", "", err
	}
	if !hasPort {
		return host, defaultPort(scheme), nil
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || strconv.FormatUint(n, 10) != port {
		return "", "", errors.New("port is not a number from 1 to 65535")
	}
	return host, port, nil
}

func checkHost(host string) error {
	if literal, ok := strings.CutPrefix(host, "["); ok {
		literal = strings.TrimSuffix(literal, "]")
		address, err := netip.ParseAddr(literal)
		switch {
		case err != nil || !address.Is6() || address.Is4In6():
			return errors.New("host in brackets is not an IPv6 address")
		case address.String() != literal:
			return fmt.Errorf("IPv6 address is not in the canonical form %s", address)
		}
		return nil
	}
	if host == "" || len(host) > 253 {
		return errors.New("host is missing or too long")
	}
	if host != strings.ToLower(host) {
		return errors.New("host is not in lower case")
	}
	if numberLike.MatchString(host) {
		if address, err := netip.ParseAddr(host); err != nil || !address.Is4() {
			return errors.New("IPv4 address is not four decimal numbers")
		}
		return nil
	}
	if !hostName.MatchString(host) {
		return errors.New("host is not a DNS name")
	}
	return nil
}

func defaultPort(scheme string) string {
	if scheme == "https" {
		return "443"
	}
	return "80"
}

// String formats the URL without a trailing slash or the default port; "" for the zero value.
func (u URL) String() string {
	if u == (URL{}) {
		return ""
	}
	return u.Origin() + u.path
}

// Origin returns the scheme, the host and a port other than the default: http://localhost:8000.
func (u URL) Origin() string {
	if u.port == defaultPort(u.scheme) {
		return u.scheme + "://" + u.host
	}
	return u.scheme + "://" + u.host + ":" + u.port
}

// Contains reports whether other has the same scheme, host and port and a path at or below that of
// u: /v1 contains /v1 and /v1/beta, but not /v10.
func (u URL) Contains(other URL) bool {
	return u != (URL{}) && u.scheme == other.scheme && u.host == other.host && u.port == other.port &&
		(u.path == other.path || strings.HasPrefix(other.path, u.path+"/"))
}

// IsLoopback reports whether the host is localhost or a loopback address.
func (u URL) IsLoopback() bool {
	if u.host == "localhost" {
		return true
	}
	address, err := netip.ParseAddr(strings.Trim(u.host, "[]"))
	return err == nil && address.IsLoopback()
}
