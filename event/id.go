package event

import (
	"fmt"
	"strconv"
	"strings"
)

// Maximum lengths of names in bytes. A tenant and a slash precede the name of a context.
const (
	MaxContextName = 128
	MaxTenant      = 64
)

// ValidateContextName accepts the local name of a context ([ValidateLocalName]), perhaps after a tenant ([ValidateTenant])
// and a slash: demo, acme/demo.
func ValidateContextName(name string) error {
	tenant, local, ok := strings.Cut(name, "/")
	if !ok {
		return ValidateLocalName(name)
	}
	if err := ValidateTenant(tenant); err != nil {
		return err
	}
	return ValidateLocalName(local)
}

// ValidateLocalName accepts 1 to [MaxContextName] of A-Z a-z 0-9 . _ -, first a letter or digit.
func ValidateLocalName(name string) error {
	if isName(name, MaxContextName) {
		return nil
	}
	return fmt.Errorf("context %s: a name has 1-%d of A-Z a-z 0-9 . _ -, first a letter or digit", quote(name), MaxContextName)
}

// ValidateTenant accepts 1 to [MaxTenant] of A-Z a-z 0-9 . _ -, first a letter or digit.
func ValidateTenant(tenant string) error {
	if isName(tenant, MaxTenant) {
		return nil
	}
	return fmt.Errorf("tenant %s: a tenant has 1-%d of A-Z a-z 0-9 . _ -, first a letter or digit", quote(tenant), MaxTenant)
}

func isName(name string, maxBytes int) bool {
	ok := name != "" && len(name) <= maxBytes
	for i := 0; ok && i < len(name); i++ {
		c := name[i]
		alnum := c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
		ok = alnum || i > 0 && (c == '.' || c == '_' || c == '-')
	}
	return ok
}

// CutTenant splits the name of a context into its tenant, "" for none, and the name within the tenant, which its events
// contain.
func CutTenant(contextName string) (tenant, local string) {
	if tenant, local, ok := strings.Cut(contextName, "/"); ok {
		return tenant, local
	}
	return "", contextName
}

// JoinTenant is the inverse of [CutTenant].
func JoinTenant(tenant, local string) string {
	if tenant == "" {
		return local
	}
	return tenant + "/" + local
}

// FormatID returns the id of the n-th event of a context, counted from 1: demo:0001. It omits the tenant.
func FormatID(contextName string, n int) string {
	_, local := CutTenant(contextName)
	return fmt.Sprintf("%s:%04d", local, n)
}

// IDBefore returns the id of the event before the n-th one of a context; "": there is none.
func IDBefore(contextName string, n int) string {
	if n <= 1 {
		return ""
	}
	return FormatID(contextName, n-1)
}

// Counter returns the number in an event id; 0 if id is not one.
func Counter(id string) int {
	i := strings.LastIndexByte(id, ':')
	if i <= 0 {
		return 0
	}
	digits := id[i+1:]
	if len(digits) < 4 || len(digits) > 4 && digits[0] == '0' || digits[0] == '+' {
		return 0
	}
	n, err := strconv.Atoi(digits)
	if err != nil || n < 1 {
		return 0
	}
	return n
}

// FormatRequestID returns the id of the n-th request of a context, counted from 1: demo:r0001. It omits the tenant.
func FormatRequestID(contextName string, n int) string {
	_, local := CutTenant(contextName)
	return fmt.Sprintf("%s:r%04d", local, n)
}

// RequestNumber returns the number in a request id; 0 if id is not one.
func RequestNumber(id string) int {
	i := strings.LastIndex(id, ":r")
	if i <= 0 || len(id)-i-2 < 4 {
		return 0
	}
	n, err := strconv.Atoi(id[i+2:])
	if err != nil || n < 1 || id[i+2] == '+' {
		return 0
	}
	return n
}
