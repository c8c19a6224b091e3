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
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/hook"
	"github.com/seed-9ed7edd4/chronicle/hook/webhook"
	"github.com/seed-9ed7edd4/chronicle/internal/child"
	"github.com/seed-9ed7edd4/chronicle/internal/connect"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/internal/stream"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/tool"
	"github.com/seed-9ed7edd4/chronicle/tool/mcp"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

// workerVariable turns the test binary into a worker. Its value is the JSON of
// workerSettings.
const workerVariable = "CHRONICLE_E2E_WORKER"

type workerSettings struct {
	Temporal     string        `json:"temporal"`
	NATS         string        `json:"nats"`
	ModelURL     string        `json:"modelUrl"`
	BlobURL      string        `json:"blobUrl"`
	TaskQueue    string        `json:"taskQueue"`
	Part         contexts.Part `json:"part"`
	DrainTimeout time.Duration `json:"drainTimeout"`
	// HangOnSignal makes the process hang when it signals a context.
	HangOnSignal bool `json:"hangOnSignal"`
	// HoldResults is the URL of [holdResults], Holds the type of the activities.
	HoldResults string `json:"holdResults"`
	Holds       string `json:"holds"`
	// HooksFile is a file like examples/config/hooks.toml.
	HooksFile string                   `json:"hooksFile"`
	Budgets   []activities.LabelBudget `json:"budgets"`
	// MCP are servers whose tools replace the probes.
	MCP           []mcp.Server  `json:"mcp"`
	ContinueAfter int           `json:"continueAfter"`
	Failover      time.Duration `json:"failover"`
}

type hangOnSignal struct {
	interceptor.ClientInterceptorBase
}

func (*hangOnSignal) InterceptClient(next interceptor.ClientOutboundInterceptor) interceptor.ClientOutboundInterceptor {
	return &hanging{interceptor.ClientOutboundInterceptorBase{Next: next}}
}

type hanging struct {
	interceptor.ClientOutboundInterceptorBase
}

func (*hanging) SignalWithStartWorkflow(context.Context, *interceptor.ClientSignalWithStartWorkflowInput) (client.WorkflowRun, error) {
	select {}
}

// workerMain runs a worker process. It logs at debug level, more than the real worker.
func workerMain(settings string) (code int) {
	logger := slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	if err := runWorker(settings, logger); err != nil {
		logger.Error("the worker failed", "error", err)
		return 1
	}
	return 0
}

func runWorker(settings string, logger *slog.Logger) error {
	var s workerSettings
	if err := json.Unmarshal([]byte(settings), &s); err != nil {
		return fmt.Errorf("%s: %w", workerVariable, err)
	}
	store, err := blobs.Open(context.Background(), s.BlobURL, "default")
	if err != nil {
		return err
	}
	defer store.Close()
	options := client.Options{
		HostPort: s.Temporal, Identity: fmt.Sprintf("worker %d", os.Getpid()), Logger: log.NewStructuredLogger(logger),
	}
	options = connect.WithStore(options, store)
	if s.HangOnSignal {
		options.Interceptors = []interceptor.ClientInterceptor{&hangOnSignal{}}
	}
	if s.HoldResults != "" {
		options.Interceptors = []interceptor.ClientInterceptor{&holdResults{url: s.HoldResults, of: s.Holds}}
	}
	temporal, err := client.Dial(options)
	if err != nil {
		return err
	}
	defer temporal.Close()
	conn, err := stream.Connect(s.NATS, stream.Options{Name: "worker process", Auth: natsAuth()})
	if err != nil {
		return err
	}
	defer conn.Close()
	var hooks []hook.Hook
	if s.HooksFile != "" {
		if hooks, err = webhook.ReadFile(s.HooksFile, webhook.Options{AllowLoopback: true}); err != nil {
			return err
		}
	}
	tools, closeTools, err := s.tools(logger)
	if err != nil {
		return err
	}
	defer closeTools()
	connection := &contexts.Connection{
		Temporal: temporal, TaskQueue: s.TaskQueue, Archive: archive.New(store), SearchAttributes: true, Stream: conn,
	}
	w, err := connection.NewWorker(contexts.Options{
		Part: s.Part, Models: scripted(s.ModelURL), Tools: tools, DrainTimeout: s.DrainTimeout, Failover: s.Failover,
		Hooks: hooks, Budgets: s.Budgets, ContinueAfter: s.ContinueAfter,
	})
	if err != nil {
		return err
	}
	return w.Run(worker.InterruptCh())
}

func (s workerSettings) tools(logger *slog.Logger) (tools activities.Tools, stop func(), err error) {
	if len(s.MCP) == 0 {
		return probes{}, func() {}, nil
	}
	servers, err := mcp.New(mcp.Options{Servers: s.MCP, Logger: logger})
	if err != nil {
		return nil, nil, err
	}
	set, err := tool.NewSet(tool.Options{Logger: logger, Sources: map[string]tool.Source{mcp.Prefix: servers}})
	return set, servers.Close, err
}

func scripted(url string) *llm.Adapter {
	return llm.New(llm.Options{
		Getenv:        func(string) string { return "" },
		AllowLoopback: true,
		Defaults:      llm.Defaults{ProviderID: "openai", BaseURL: url, Model: "scripted"},
	})
}

type process struct {
	*child.Process
	w      *world
	output bytes.Buffer // readable after the process has ended
}

// process starts a worker process without waiting for it. The process stops at the end of
// the test.
func (w *world) process(part contexts.Part) *process {
	w.t.Helper()
	return w.processWith(workerSettings{Part: part})
}

// drainingProcess starts a worker process that completes running answers before it stops.
func (w *world) drainingProcess() *process {
	w.t.Helper()
	return w.processWith(workerSettings{DrainTimeout: 30 * time.Second})
}

func (w *world) processWith(s workerSettings) *process {
	w.t.Helper()
	s.Temporal, s.NATS, s.ModelURL, s.BlobURL, s.TaskQueue = w.on.temporal, w.on.nats, w.model.URL, w.blobURL, w.queue
	s.Failover = failover(w.t)
	settings, err := json.Marshal(s)
	require.NoError(w.t, err)
	executable, err := os.Executable()
	require.NoError(w.t, err)
	return w.start(exec.CommandContext(context.Background(), executable), workerVariable+"="+string(settings))
}

// start starts a worker process with the given environment and arguments only.
func (w *world) start(cmd *exec.Cmd, environment ...string) *process {
	w.t.Helper()
	p := &process{w: w}
	cmd.Env = append(environment, "PATH="+os.Getenv("PATH"), "HOME="+w.t.TempDir())
	for _, variable := range os.Environ() {
		if strings.HasPrefix(variable, "AWS_") || strings.HasPrefix(variable, "NATS_") { // credentials
			cmd.Env = append(cmd.Env, variable)
		}
	}
	cmd.Stdout, cmd.Stderr = &p.output, &p.output
	var err error
	p.Process, err = child.Start(cmd, child.Options{OwnGroup: true})
	require.NoError(w.t, err)
	w.t.Cleanup(func() {
		require.NoError(w.t, p.Stop(testTimeout))
		require.NotContains(w.t, p.output.String(), "WARNING: DATA RACE")
		if w.t.Failed() {
			w.t.Logf("log of worker process %d:\n%s", p.PID(), p.logErrors())
		}
	})
	return p
}

func (p *process) kill() {
	p.w.t.Helper()
	require.NoError(p.w.t, syscall.Kill(p.PID(), syscall.SIGKILL))
	<-p.Done()
}

func (p *process) logErrors() string {
	var b strings.Builder
	for line := range strings.Lines(p.output.String()) {
		if !strings.Contains(line, `"level":"DEBUG"`) && !strings.Contains(line, `"level":"INFO"`) {
			b.WriteString(line)
		}
	}
	return b.String()
}
