package logging_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"
	sdklog "go.temporal.io/sdk/log"
	"go.uber.org/zap"

	"github.com/seed-9ed7edd4/chronicle/internal/logging"
	"github.com/seed-9ed7edd4/chronicle/internal/terminal"
)

func TestLogLinesDoNotControlTheTerminal(t *testing.T) {
	const hostile = "\x1b]0;t\x07\u009b31m\u202e\x9b5m\x7f"
	for _, asJSON := range []bool{false, true} {
		var out bytes.Buffer
		log := logging.New(&out, asJSON, zap.InfoLevel)
		log.Warn(hostile, zap.Error(errors.New(hostile)), zap.String(hostile, hostile))
		logging.Structured(log, hostile, zap.WarnLevel).Warn(hostile, "model", hostile)
		logging.Temporal(log).Warn(hostile, hostile, hostile)
		require.Equal(t, terminal.Clean(out.String()), out.String())
		if asJSON {
			for decoder := json.NewDecoder(&out); decoder.More(); {
				var line map[string]any
				require.NoError(t, decoder.Decode(&line))
				require.Contains(t, line["msg"], "\x1b]0;t\x07\u009b31m\u202e", "JSON preserves the text")
			}
		}
	}
}

// lines are the decoded lines of a log, without their times.
func lines(t *testing.T, out *buffer) (decoded []map[string]any) {
	t.Helper()
	for decoder := json.NewDecoder(strings.NewReader(out.String())); decoder.More(); {
		var line map[string]any
		require.NoError(t, decoder.Decode(&line))
		delete(line, "time")
		decoded = append(decoded, line)
	}
	return decoded
}

type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func TestRepeatedWarningsAreLimitedAndCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &buffer{}
		log := logging.New(out, true, zap.InfoLevel)
		sdk := logging.Temporal(log)
		for i := range logging.Limit + 3 {
			log.Warn("the store is down", zap.Int("try", i))
			sdk.Error("Failed to poll for task.")
			log.Info("a decision")
			log.Warn("a recorded decision", zap.String("event", "demo:1"))
		}
		require.Equal(t, logging.Limit, strings.Count(out.String(), "the store is down"))
		require.Equal(t, logging.Limit, strings.Count(out.String(), "Failed to poll for task."))
		require.Equal(t, logging.Limit+3, strings.Count(out.String(), "a decision"))
		require.Equal(t, logging.Limit+3, strings.Count(out.String(), "a recorded decision"))

		time.Sleep(logging.Interval)
		synctest.Wait()
		got := lines(t, out)
		require.Equal(t, []map[string]any{
			{"level": "warn", "msg": "omitted repeated lines", "message": "the store is down", "omitted": 3.0},
			{"level": "error", "logger": "temporal-sdk", "msg": "omitted repeated lines", "message": "Failed to poll for task.", "omitted": 3.0},
		}, got[len(got)-2:])

		for range logging.Limit + 1 {
			log.Warn("the store is down")
		}
		require.Equal(t, 2*logging.Limit+1, strings.Count(out.String(), "the store is down"), "the next interval begins again")
		require.NoError(t, log.Sync())
		got = lines(t, out)
		require.Equal(t, 1.0, got[len(got)-1]["omitted"], "the last count is written before the program exits")
	})
}

func TestLinesOfTheTemporalSDKHaveTheFieldsOfTheLog(t *testing.T) {
	out := &buffer{}
	log := logging.New(out, true, zap.InfoLevel)
	sdk := logging.Temporal(log)
	sdk.Info("Started Worker")
	sdk.Warn("Failed to poll for task.", "WorkerType", "ActivityWorker", "Error", errors.New("worker stopping"))
	sdk.Warn("Failed to process workflow task.", "Namespace", "default", "WorkflowID", "context:acme/demo", "RunID", "r", "Attempt", 3, "Error", errors.New("lost"))
	workflow := sdklog.With(sdk, "WorkflowType", "Context", "WorkflowID", "context:demo", "RunID", "r", "Attempt", 1)
	workflow.Debug("NewTimer")
	workflow.Info("request sent", "request", "demo:r1")
	activity := sdklog.With(sdk, "ActivityID", "5", "ActivityType", "CallTool", "Attempt", 2, "WorkflowID", "send:x", "TraceID", trace.TraceID{15: 1})
	activity.Info("tool panicked", "call", "c1")
	activity.Warn("RecordActivityHeartbeat with error", "Error", context.Canceled)
	require.Equal(t, []map[string]any{
		{"level": "warn", "logger": "temporal-sdk", "msg": "Failed to process workflow task.", "context": "acme/demo", "run": "r", "task_attempt": 3.0, "error": "lost"},
		{"level": "info", "logger": "workflow", "msg": "request sent", "context": "demo", "run": "r", "request": "demo:r1"},
		{"level": "info", "logger": "activity", "msg": "tool panicked", "workflow": "send:x", "activity": "CallTool", "trace": "00000000000000000000000000000001", "call": "c1"},
	}, lines(t, out))
}

func TestErrorsAndWarningsContainNoSecrets(t *testing.T) {
	const secret = "sk-proj-abcdefgh12345678"
	out := &buffer{}
	log := logging.New(out, true, zap.DebugLevel)
	err := fmt.Errorf("dial nats://user:hunter2@host: key %s", secret)
	log.Info("connecting", zap.Error(err))
	log.Warn("connecting with "+secret, zap.Error(err), zap.String("url", "https://user:hunter2@host"))
	logging.Temporal(log).Error("Workflow task postprocess error: "+err.Error(), "Error", err)
	logging.Structured(log, "mcp", zap.InfoLevel).Warn("failed", "error", err.Error())
	require.Len(t, lines(t, out), 4)
	for range logging.Limit {
		log.Warn("connecting with " + secret)
	}
	require.NoError(t, log.Sync())
	require.Contains(t, out.String(), `"omitted":1`)
	require.NotContains(t, out.String(), secret)
	require.NotContains(t, out.String(), "hunter2")
}
