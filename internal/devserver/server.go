package devserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/seed-9ed7edd4/chronicle/internal/child"
)

// Files in the data directory.
const (
	databaseFile = "temporal.db"
	logFile      = "temporal.log"
)

const (
	startTimeout = time.Minute // the first start creates the schema
	stopTimeout  = 30 * time.Second
	// attempts bounds the starts while other processes take the server's internal ports.
	attempts = 3
)

// Options configure a server. Command and DataDir are required.
type Options struct {
	// Command is the path of the temporal command; see [Find].
	Command string
	// DataDir is an existing directory not used by another server; see [Lock].
	DataDir string
	// Namespace is created if missing. The default is "default".
	Namespace string
	// Port of the gRPC API and UIPort of the Web UI on 127.0.0.1. Zero: any free port.
	Port, UIPort int
	// MetricsPort serves the metrics of the server for Prometheus on 127.0.0.1. Zero: none.
	MetricsPort int
	// Untuned omits the settings in [Tuning].
	Untuned bool
	// Unsynced omits fsync, for tests: the data survives a crash of the process but not of the
	// machine, and a busy disk does not delay the server.
	Unsynced bool
}

// Tuning is dynamic configuration that makes the server faster, JSON values by key. No guarantee depends on it.
//   - By default a shard polls its internal queues at most 20 times per second, which delays
//     each task by up to 50 ms, and timers have a resolution of one second. Much more
//     than 200 polls per second reduces batching and slows down many concurrent contexts.
//   - Gateways and `starter list` list workflows; the namespace limit is 1000 lists per second
//     here, 10 by default.
//   - Eager execution returns an activity task with the workflow task completion instead
//     of through a task queue, as newer servers do by default.
//   - A run can continue as new within its first second without being delayed.
//   - A workflow task whose worker was killed is repeated after its timeout, 10 s. Failed
//     attempts extend the timeout by up to 20 s, by default by up to ten
//     minutes: after an outage of the blob store, a killed worker would block its contexts for that long.
//   - The server deletes the history of a run a second after the run closed, and no longer lists it then, by default 30 s.
//
// A test keeps deploy/dynamicconfig.yaml in sync.
var Tuning = map[string]string{
	"history.transferProcessorMaxPollRPS":    `200`,
	"history.timerProcessorMaxPollRPS":       `200`,
	"history.timerProcessorMaxTimeShift":     `"1ms"`,
	"frontend.namespaceRPS.visibility":       `1000`,
	"system.enableActivityEagerExecution":    `true`,
	"history.workflowIdReuseMinimalInterval": `"1ms"`,
	"history.workflowTaskRetryMaxInterval":   `"20s"`,

	"history.transferProcessorUpdateAckInterval":   `"1s"`,
	"history.visibilityProcessorUpdateAckInterval": `"1s"`,
}

type Server struct {
	options Options
	process *child.Process
	log     *os.File
	stop    func() error
}

// Start waits until the server is ready. ctx has no effect after that. The error is a *PortError if
// a requested port is in use.
func Start(ctx context.Context, options Options) (*Server, error) {
	if options.Namespace == "" {
		options.Namespace = "default"
	}
	for attempt := 1; ; attempt++ {
		s, err := start(ctx, options)
		if err == nil || attempt == attempts || !errors.Is(err, errPortTaken) {
			return s, err
		}
	}
}

var errPortTaken = errors.New("another process took a port while the server started")

func start(ctx context.Context, options Options) (*Server, error) {
	ports, err := FreePorts(options.Port, options.UIPort)
	if err != nil {
		return nil, err
	}
	options.Port, options.UIPort = ports[0], ports[1]
	if options.DataDir, err = filepath.Abs(options.DataDir); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	log, err := os.Create(filepath.Join(options.DataDir, logFile))
	if err != nil {
		return nil, fmt.Errorf("temporal server log: %w", err)
	}
	s := &Server{options: options, log: log}
	s.process, err = child.Start(s.command(), child.Options{OwnGroup: true})
	if err != nil {
		_ = log.Close()
		return nil, err
	}
	s.stop = sync.OnceValue(func() error {
		return errors.Join(s.process.Stop(stopTimeout), s.log.Close())
	})
	if err := s.ready(ctx); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

func (s *Server) command() *exec.Cmd {
	// With a write-ahead log, commits need no fsync and still survive a crash of the process.
	synchronous := "normal"
	if s.options.Unsynced {
		synchronous = "off"
	}
	args := []string{
		"server", "start-dev",
		"--ip", host, "--port", strconv.Itoa(s.options.Port), "--ui-port", strconv.Itoa(s.options.UIPort),
		"--namespace", s.options.Namespace,
		"--db-filename", filepath.Join(s.options.DataDir, databaseFile),
		"--sqlite-pragma", "journal_mode=wal", "--sqlite-pragma", "synchronous=" + synchronous,
		"--log-format", "text", "--log-level", "warn",
		"--disable-config-file", "--disable-config-env",
	}
	if s.options.MetricsPort != 0 {
		args = append(args, "--metrics-port", strconv.Itoa(s.options.MetricsPort))
	}
	if !s.options.Untuned {
		for key, value := range Tuning {
			args = append(args, "--dynamic-config-value", key+"="+value)
		}
	}
	cmd := exec.Command(s.options.Command, args...)
	// The environment can contain keys and settings for another server.
	cmd.Env = []string{"HOME=" + s.options.DataDir, "PATH=" + os.Getenv("PATH")}
	cmd.Stdout, cmd.Stderr = s.log, s.log
	return cmd
}

func (s *Server) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("not ready after %v", startTimeout))
	defer cancel()
	go func() {
		select {
		case <-s.Done():
			cancel()
		case <-ctx.Done():
		}
	}()
	err := prepareNamespace(ctx, s.Address(), s.options.Namespace)
	if err == nil {
		err = awaitHTTP(ctx, s.UIURL())
	}
	if err == nil {
		return nil
	}
	select {
	case <-s.Done():
		return s.Err()
	default:
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return fmt.Errorf("start temporal server: %w%s", err, s.lastLines())
}

func awaitHTTP(ctx context.Context, url string) error {
	return retry(ctx, func() error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		return response.Body.Close()
	})
}

// retry calls f until it succeeds or ctx is done, and returns its last error.
func retry(ctx context.Context, f func() error) error {
	ticker := time.NewTicker(25 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := f()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-ticker.C:
		}
	}
}

func (s *Server) Address() string { return address(s.options.Port) }

func (s *Server) Namespace() string { return s.options.Namespace }

func (s *Server) UIURL() string { return "http://" + address(s.options.UIPort) }

func (s *Server) PID() int { return s.process.PID() }

func (s *Server) Done() <-chan struct{} { return s.process.Done() }

// Err waits until the server exits. It is never nil, since the server should not exit on its own.
func (s *Server) Err() error {
	how := "exit status 0"
	if err := s.process.Err(); err != nil {
		how = err.Error()
	}
	tail := s.lastLines()
	err := fmt.Errorf("temporal server exited: %s; log: %s%s", how, s.log.Name(), tail)
	if strings.Contains(tail, "address already in use") {
		return errors.Join(errPortTaken, err)
	}
	return err
}

// Stop terminates the server. After ten seconds it kills the server and returns an error; no data
// is lost. Further calls return the same result.
func (s *Server) Stop() error { return s.stop() }
