package retryafter_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/internal/retryafter"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func TestRetryAfter(t *testing.T) {
	tests := map[string]struct {
		after, afterMs string
		want           time.Duration
	}{
		"nothing":                      {},
		"seconds":                      {after: "7", want: 7 * time.Second},
		"a fraction of a second":       {after: "0.25", want: 250 * time.Millisecond},
		"space around it":              {after: " 7 ", want: 7 * time.Second},
		"zero":                         {after: "0"},
		"a negative number":            {after: "-1"},
		"an hour at most":              {after: "86400", want: time.Hour},
		"overflow of a duration":       {after: "1e300", want: time.Hour},
		"infinity":                     {after: "Inf", want: time.Hour},
		"no number":                    {after: "NaN"},
		"not a number":                 {after: "soon"},
		"a date":                       {after: "Fri, 02 Jan 2026 12:00:30 GMT", want: 30 * time.Second},
		"a date of RFC 850":            {after: "Friday, 02-Jan-26 12:00:30 GMT", want: 30 * time.Second},
		"a date that has passed":       {after: "Fri, 02 Jan 2026 11:00:00 GMT"},
		"a date far away":              {after: "Sat, 02 Jan 2027 12:00:00 GMT", want: time.Hour},
		"milliseconds":                 {afterMs: "1500", want: 1500 * time.Millisecond},
		"milliseconds precede seconds": {after: "2", afterMs: "1500", want: 1500 * time.Millisecond},
		"invalid milliseconds do not":  {after: "2", afterMs: "soon", want: 2 * time.Second},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			header := http.Header{}
			header.Set("Retry-After", test.after)
			header.Set("Retry-After-Ms", test.afterMs)
			require.Equal(t, test.want, retryafter.Of(header, noon))
		})
	}
}

func FuzzRetryAfterIsInRange(f *testing.F) {
	for _, seed := range []string{"", "7", "0.5", "-1", "1e999", "NaN", "Fri, 02 Jan 2026 12:00:30 GMT", "0x1p-2"} {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, after, afterMs string) {
		header := http.Header{"Retry-After": {after}, "Retry-After-Ms": {afterMs}}
		reset := http.Header{"X-Ratelimit-Reset": {after}, "Anthropic-Ratelimit-Tokens-Reset": {afterMs}}
		for _, wait := range []time.Duration{retryafter.Of(header, noon), retryafter.OfReset(reset, noon), retryafter.InText(after + afterMs)} {
			require.GreaterOrEqual(t, wait, time.Duration(0))
			require.LessOrEqual(t, wait, time.Hour)
		}
	})
}

func TestResetsOfLimits(t *testing.T) {
	tests := map[string]struct {
		header map[string]string
		want   time.Duration
	}{
		"nothing":                       {},
		"a duration":                    {map[string]string{"x-ratelimit-reset-requests": "6m0s"}, 6 * time.Minute},
		"milliseconds":                  {map[string]string{"x-ratelimit-reset-tokens": "20ms"}, 20 * time.Millisecond},
		"a fraction of a second":        {map[string]string{"x-ratelimit-reset-tokens": "7.66s"}, 7660 * time.Millisecond},
		"seconds":                       {map[string]string{"x-ratelimit-reset-requests": "15"}, 15 * time.Second},
		"a time":                        {map[string]string{"anthropic-ratelimit-tokens-reset": "2026-01-02T12:00:40Z"}, 40 * time.Second},
		"a time that has passed":        {map[string]string{"anthropic-ratelimit-tokens-reset": "2026-01-02T11:00:40Z"}, 0},
		"a Unix time":                   {map[string]string{"x-ratelimit-reset": "1767355225"}, 25 * time.Second},
		"a Unix time in milliseconds":   {map[string]string{"x-ratelimit-reset": "1767355202500"}, 2500 * time.Millisecond},
		"a time far away":               {map[string]string{"x-ratelimit-reset": "1798891200"}, time.Hour},
		"the limit that is exceeded":    {map[string]string{"x-ratelimit-reset-requests": "1s", "x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-tokens": "9m", "x-ratelimit-remaining-tokens": "1200"}, time.Second},
		"the longer of two":             {map[string]string{"x-ratelimit-reset-requests": "1s", "x-ratelimit-reset-tokens": "3s"}, 3 * time.Second},
		"no limit is exceeded":          {map[string]string{"x-ratelimit-reset-tokens": "9m", "x-ratelimit-remaining-tokens": "1"}, 0},
		"a limit of Anthropic not used": {map[string]string{"anthropic-ratelimit-requests-reset": "2026-01-02T12:00:40Z", "anthropic-ratelimit-requests-remaining": "49"}, 0},
		"no number":                     {map[string]string{"x-ratelimit-reset": "soon"}, 0},
		"a number without sense":        {map[string]string{"x-ratelimit-reset": "9e300"}, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			header := http.Header{}
			for field, value := range test.header {
				header.Set(field, value)
			}
			require.Equal(t, test.want, retryafter.OfReset(header, noon))
		})
	}
}

func TestDelaysInTexts(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"":     0,
		"busy": 0,
		`{"error":{"details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"31.5s"}]}}`: 31500 * time.Millisecond,
		`{"retryDelay": "0s"}`:                                  0,
		`{"retry_after": 4}`:                                    4 * time.Second,
		`{"retry_after_ms":250}`:                                250 * time.Millisecond,
		`{"retry_after_seconds":1.5}`:                           1500 * time.Millisecond,
		"Rate limit reached. Please try again in 20s. See":      20 * time.Second,
		"Please try again in 1m2.5s.":                           62500 * time.Millisecond,
		"Please try again in 120ms.":                            120 * time.Millisecond,
		"Please retry in 8.75s.":                                8750 * time.Millisecond,
		"Please retry after 26 seconds.":                        26 * time.Second,
		"Try again in 2 minutes and 5 seconds":                  125 * time.Second,
		"wait for 3 hours":                                      time.Hour,
		"You must wait 1 minute":                                time.Minute,
		"The limit is 20 s per request":                         0,
		"try again in a moment":                                 0,
		"try again in 99999999999999999999999999999999999999 h": time.Hour,
	} {
		require.Equal(t, want, retryafter.InText(text), text)
	}
}

func TestADelayCanHaveAUnit(t *testing.T) {
	require.Equal(t, 90*time.Second, retryafter.Of(http.Header{"Retry-After": {"1m30s"}}, noon))
	require.Equal(t, 40*time.Millisecond, retryafter.Of(http.Header{"X-Ms-Retry-After-Ms": {"40"}}, noon))
}
