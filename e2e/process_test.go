package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"

	"github.com/seed-9ed7edd4/chronicle/archive"
	"github.com/seed-9ed7edd4/chronicle/blobs"
	"github.com/seed-9ed7edd4/chronicle/internal/child"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/stream"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

// asWorker makes a copy of the test binary be a worker. Its value is the JSON
// of a workerSettings.
const asWorker = "CHRONICLE_E2E_WORKER"

// workerSettings are what a worker needs that is a process of its own.
type workerSettings struct {
	Temporal  string        `json:"temporal"`
	NATS      string        `json:"nats"`
	ModelURL  string        `json:"modelUrl"`
	BlobURL   string        `json:"blobUrl"`
	TaskQueue string        `json:"taskQueue"`
	Part      contexts.Part `json:"part"`
	// DrainTimeout is that of contexts.Options.
	DrainTimeout time.Duration `json:"drainTimeout"`
}

// serveContexts is the life of such a worker. It logs all that there is to log,
// and far more than the worker of the product does.
func serveContexts(settings string) (code int) {
	logger := slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	if err := runContexts(settings, logger); err != nil {
		logger.Error("the worker failed", "error", err)
		return 1
	}
	return 0
}

func runContexts(settings string, logger *slog.Logger) error {
	var s workerSettings
	if err := json.Unmarshal([]byte(settings), &s); err != nil {
		return fmt.Errorf("%s: %w", asWorker, err)
	}
	store, err := blobs.Open(context.Background(), s.BlobURL, "default")
	if err != nil {
		return err
	}
	defer store.Close()
	temporal, err := client.Dial(client.Options{
		HostPort: s.Temporal, Identity: fmt.Sprintf("worker %d", os.Getpid()), Logger: log.NewStructuredLogger(logger),
		ExternalStorage: blobs.ExternalStorage(store),
	})
	if err != nil {
		return err
	}
	defer temporal.Close()
	conn, err := stream.Connect(s.NATS, stream.Options{Name: "worker process"})
	if err != nil {
		return err
	}
	defer conn.Close()
	return contexts.NewWorker(temporal, contexts.Options{
		TaskQueue: s.TaskQueue, Part: s.Part, Models: scripted(s.ModelURL), Stream: conn,
		Archive: archive.New(store), SearchAttributes: true, DefaultModel: "scripted",
		DrainTimeout: s.DrainTimeout,
	}).Run(worker.InterruptCh())
}

// scripted is the adapter of a worker whose default model is a scripted one.
func scripted(url string) *llm.Adapter {
	return llm.New(llm.Options{
		Getenv:        func(string) string { return "" },
		AllowLoopback: true,
		Defaults:      llm.Defaults{ProviderID: "openai", BaseURL: url, Model: "scripted"},
	})
}

// process is a worker in a process of its own.
type process struct {
	*child.Process
	w      *world
	output bytes.Buffer // to be read when the process has ended
}

// process starts a worker process for a part of the work. What it is asked to
// do before it is ready waits for it at the server. It is stopped at the end of
// the test, unless it was killed before.
func (w *world) process(part contexts.Part) *process {
	w.t.Helper()
	return w.processWith(workerSettings{Part: part})
}

// drainingProcess starts a worker process that lets answers finish when it is
// told to stop.
func (w *world) drainingProcess() *process {
	w.t.Helper()
	return w.processWith(workerSettings{DrainTimeout: 30 * time.Second})
}

func (w *world) processWith(s workerSettings) *process {
	w.t.Helper()
	s.Temporal, s.NATS, s.ModelURL, s.BlobURL, s.TaskQueue = w.on.temporal, w.on.nats, w.model.URL, w.blobURL, w.queue
	settings, err := json.Marshal(s)
	require.NoError(w.t, err)
	executable, err := os.Executable()
	require.NoError(w.t, err)
	return w.start(exec.CommandContext(context.Background(), executable), asWorker+"="+string(settings))
}

// start starts a worker process that is told all by its environment and its
// arguments.
func (w *world) start(cmd *exec.Cmd, environment ...string) *process {
	w.t.Helper()
	p := &process{w: w}
	cmd.Env = append(environment, "PATH="+os.Getenv("PATH"), "HOME="+w.t.TempDir())
	for _, variable := range os.Environ() {
		if strings.HasPrefix(variable, "AWS_") { // for the blob store
			cmd.Env = append(cmd.Env, variable)
		}
	}
	cmd.Stdout, cmd.Stderr = &p.output, &p.output
	var err error
	p.Process, err = child.Start(cmd, child.Options{OwnGroup: true})
	require.NoError(w.t, err)
	w.t.Cleanup(func() {
		require.NoError(w.t, p.Stop(30*time.Second))
		require.NotContains(w.t, p.output.String(), "WARNING: DATA RACE")
		if w.t.Failed() {
			w.t.Logf("worker process %d said\n%s", p.PID(), p.complaints())
		}
	})
	return p
}

// kill ends the process as a crash would: it has no time for anything.
func (p *process) kill() {
	p.w.t.Helper()
	require.NoError(p.w.t, syscall.Kill(p.PID(), syscall.SIGKILL))
	<-p.Done()
}

// complaints are the lines of the log that are worth reading first.
func (p *process) complaints() string {
	var b strings.Builder
	for line := range strings.Lines(p.output.String()) {
		if !strings.Contains(line, `"level":"DEBUG"`) && !strings.Contains(line, `"level":"INFO"`) {
			b.WriteString(line)
		}
	}
	return b.String()
}
