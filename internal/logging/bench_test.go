package logging_test

import (
	"io"
	"testing"

	sdklog "go.temporal.io/sdk/log"
	"go.uber.org/zap"

	"github.com/seed-9ed7edd4/chronicle/internal/logging"
)

// BenchmarkLine writes a line of a workflow.
func BenchmarkLine(b *testing.B) {
	log := sdklog.With(logging.Temporal(logging.New(io.Discard, true, zap.InfoLevel)),
		"WorkflowType", "Context", "WorkflowID", "context:demo", "RunID", "0198c0de-0000-7000-8000-000000000000", "Attempt", 1)
	for b.Loop() {
		log.Info("request sent", "event", "demo:0008", "request", "demo:r0001", "trace", "0af7651916cd43dd8448eb211c80319c",
			"attempt", 1, "provider", "house", "model", "large")
	}
}
