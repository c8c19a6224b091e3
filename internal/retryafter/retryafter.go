// Package retryafter reads the delay before a retry that a server requests.
package retryafter

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const maxDelay = time.Hour

// Of returns the delay in the header of a response, at most an hour; 0: none. It reads
// retry-after-ms (OpenAI), then Retry-After (RFC 9110, section 10.2.3: a date or seconds, here also
// with a fraction).
func Of(header http.Header, now time.Time) time.Duration {
	if wait, ok := parseWait(header.Get("Retry-After-Ms"), time.Millisecond); ok {
		return wait
	}
	value := header.Get("Retry-After")
	if wait, ok := parseWait(value, time.Second); ok {
		return wait
	}
	if date, err := http.ParseTime(value); err == nil {
		return min(max(0, date.Sub(now)), maxDelay)
	}
	return 0
}

func parseWait(value string, unit time.Duration) (time.Duration, bool) {
	n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
	if err != nil || math.IsNaN(n) || n < 0 {
		return 0, false
	}
	// In floating point, since the product may overflow a duration.
	return time.Duration(min(n*float64(unit), float64(maxDelay))), true
}
