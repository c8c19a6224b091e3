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
		wait := retryafter.Of(header, noon)
		require.GreaterOrEqual(t, wait, time.Duration(0))
		require.LessOrEqual(t, wait, time.Hour)
	})
}
