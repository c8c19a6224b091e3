package llm

import (
	"net/http"
	"time"

	"github.com/seed-9ed7edd4/chronicle/internal/retryafter"
)

// RetryAfter returns the delay that a provider requests, at most an hour; 0: none. It reads
// retry-after-ms (OpenAI), then Retry-After.
func RetryAfter(header http.Header, now time.Time) time.Duration { return retryafter.Of(header, now) }
