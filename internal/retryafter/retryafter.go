// Package retryafter reads the delay before a retry that a server requests.
package retryafter

import (
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const maxDelay = time.Hour

// Of returns the delay in the header of a response, at most an hour; 0: none. It reads
// retry-after-ms (OpenAI), x-ms-retry-after-ms (Azure), then Retry-After (RFC 9110, section 10.2.3: a date or seconds,
// here also with a fraction or a unit).
func Of(header http.Header, now time.Time) time.Duration {
	for _, name := range []string{"Retry-After-Ms", "X-Ms-Retry-After-Ms"} {
		if wait, ok := parseWait(header.Get(name), time.Millisecond); ok {
			return wait
		}
	}
	value := header.Get("Retry-After")
	if wait, ok := parseWait(value, time.Second); ok {
		return wait
	}
	if date, err := http.ParseTime(value); err == nil {
		return until(date, now)
	}
	return bounded(parseUnits(value))
}

// OfReset returns the delay until the limits that a request exceeded are reset, at most an hour; 0: none. It reads
// headers such as x-ratelimit-reset-requests (OpenAI, Groq), x-ratelimit-reset (OpenRouter) and
// anthropic-ratelimit-tokens-reset, but not that of a limit with a remainder. Values are seconds, durations like 6m0s, times
// of RFC 3339, and Unix times in seconds or milliseconds.
func OfReset(header http.Header, now time.Time) (longest time.Duration) {
	for name, values := range header {
		lower := strings.ToLower(name)
		if !strings.Contains(lower, "ratelimit") || !strings.Contains(lower, "reset") || len(values) == 0 {
			continue
		}
		remaining := strings.TrimSpace(header.Get(strings.Replace(lower, "reset", "remaining", 1)))
		if n, err := strconv.ParseFloat(remaining, 64); err == nil && n > 0 {
			continue
		}
		longest = max(longest, parseReset(strings.TrimSpace(values[0]), now))
	}
	return longest
}

func parseReset(value string, now time.Time) time.Duration {
	if date, err := time.Parse(time.RFC3339, value); err == nil {
		return until(date, now)
	}
	n, err := strconv.ParseFloat(value, 64)
	switch {
	case err != nil || math.IsNaN(n):
		return bounded(parseUnits(value))
	case n >= 1e15: // no time of our epoch
		return 0
	case n >= 1e11:
		return until(time.UnixMilli(int64(n)), now)
	case n >= 1e9:
		return until(time.Unix(int64(n), 0), now)
	}
	wait, _ := parseWait(value, time.Second)
	return wait
}

var (
	// Google's RetryInfo has the field retryDelay; others have retry_after, in seconds.
	fields = regexp.MustCompile(`(?i)"retry[_-]?(?:delay|after)(?:_?(ms|seconds|s))?"\s*:\s*"?(\d[\d.]*)(ms|s|m|h)?\b`)
	texts  = regexp.MustCompile(`(?i)\b(?:(?:try|retry)(?:ing)?(?: again| your request| the request)*|wait)(?: in| after| for)?:?(?: about| approximately| at least)? ((?:\d+(?:\.\d+)?\s*(?:milliseconds?|ms|hours?|hrs?|h|minutes?|mins?|m|seconds?|secs?|s)\b[ ,]*(?:and )?|\d+(?:\.\d+)?(?:ms|h|m|s))+)`)
	units  = regexp.MustCompile(`(?i)(\d+(?:\.\d+)?)\s*(milliseconds?|ms|hours?|hrs?|h|minutes?|mins?|m|seconds?|secs?|s)`)
)

// InText returns the delay that the body of an error states, at most an hour; 0: none: in a field such as
// "retryDelay":"9.5s" (Google), or in a sentence such as "Please try again in 1m2.5s" (OpenAI, Groq).
func InText(body string) time.Duration {
	if match := fields.FindStringSubmatch(body); match != nil {
		unit := match[3]
		if unit == "" {
			unit = match[1]
		}
		if unit == "" || strings.EqualFold(unit, "seconds") {
			unit = "s"
		}
		return bounded(parseUnits(match[2] + unit))
	}
	if match := texts.FindStringSubmatch(body); match != nil {
		return bounded(parseUnits(match[1]))
	}
	return 0
}

// parseUnits returns the sum of numbers with units, in nanoseconds.
func parseUnits(text string) (sum float64) {
	for _, match := range units.FindAllStringSubmatch(text, -1) {
		n, err := strconv.ParseFloat(match[1], 64)
		if err != nil {
			return 0
		}
		unit := time.Second
		switch lower := strings.ToLower(match[2]); {
		case lower == "ms" || strings.HasPrefix(lower, "milli"):
			unit = time.Millisecond
		case lower[0] == 'm':
			unit = time.Minute
		case lower[0] == 'h':
			unit = time.Hour
		}
		sum += n * float64(unit)
	}
	return sum
}

func parseWait(value string, unit time.Duration) (time.Duration, bool) {
	n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
	if err != nil || math.IsNaN(n) || n < 0 {
		return 0, false
	}
	return bounded(n * float64(unit)), true
}

// bounded takes nanoseconds in floating point, since they may overflow a duration.
func bounded(nanoseconds float64) time.Duration {
	return time.Duration(max(0, min(nanoseconds, float64(maxDelay))))
}

func until(date, now time.Time) time.Duration { return min(max(0, date.Sub(now)), maxDelay) }
