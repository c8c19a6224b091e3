package event

import (
	"fmt"
	"strconv"
	"strings"
)

// MaxContextName is the maximum length of a context name in bytes.
const MaxContextName = 128

// ValidateContextName accepts 1 to [MaxContextName] of A-Z a-z 0-9 . _ -, first a letter or digit.
func ValidateContextName(name string) error {
	ok := name != "" && len(name) <= MaxContextName
	for i := 0; ok && i < len(name); i++ {
		c := name[i]
		alnum := c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
		ok = alnum || i > 0 && (c == '.' || c == '_' || c == '-')
	}
	if !ok {
		return fmt.Errorf("context %s: a name has 1-%d of A-Z a-z 0-9 . _ -, first a letter or digit",
			quote(name), MaxContextName)
	}
	return nil
}

// FormatID returns the id of the n-th event of a context, counted from 1: demo:0001.
func FormatID(contextName string, n int) string {
	return fmt.Sprintf("%s:%04d", contextName, n)
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

// FormatRequestID returns the id of the n-th request of a context, counted from 1: demo:r0001.
func FormatRequestID(contextName string, n int) string {
	return fmt.Sprintf("%s:r%04d", contextName, n)
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
