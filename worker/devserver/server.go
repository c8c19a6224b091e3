package devserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/seed-9ed7edd4/chronicle/worker/child"
)

// Files in the data directory.
const (
	databaseFile = "temporal.db"
	logFile      = "temporal.log"
)

const (
	// startTimeout is generous: the first start creates the schema, on a
	// machine that may be busy compiling.
	startTimeout = time.Minute
	stopTimeout  = 10 * time.Second
	// attempts to start. The server picks more ports of its own and dies when
	// somebody else takes one of them first.
	attempts = 3
)

// Options say what to run. Command and DataDir are required.
type Options struct {
	// Command is the path of the temporal command; see Find.
	Command string
	// DataDir is an existing directory that no other server uses; see Lock.
	DataDir string
	// Namespace is created if it is missing. Empty: "default".
	Namespace string
	// Port of the gRPC API and UIPort of the Web UI, on 127.0.0.1. Zero: any
	// free port.
	Port, UIPort int
	// Untuned leaves out the settings that make the server fast enough for a
	// conversation; see Tuning.
	Untuned bool
	// Logger gets what the server logs, warnings and above, in its own words.
	// Nil: the log file only.
	Logger *slog.Logger
}

// Tuning makes a turn of a conversation take about 20 ms instead of 100 ms, at
// no cost in throughput. As shipped, a shard begins 20 polls of its queue per
// second, so each hop of a task waits up to 50 ms, and no timer is finer than a
// second. With far more than 200 polls there is less batching, and many
// contexts at once get slower. Every context that opens asks for one list of
// workflows, of which a namespace gets 100 per second here and 10 elsewhere. A
// request goes to the worker with the answer to the workflow task that made it,
// as newer servers do unasked, and not by way of a queue. Updates that wait for a
// worker are refused when they come to more than it could answer in one message.
// And a run that hands over to another within its first second is not made to
// wait for the rest of it.
//
// It is dynamic configuration of the server, by key, in JSON.
// deploy/dynamicconfig.yaml has the same for production, which a test holds.
var Tuning = map[string]string{
	"history.transferProcessorMaxPollRPS":    `200`,
	"history.timerProcessorMaxPollRPS":       `200`,
	"history.timerProcessorMaxTimeShift":     `"1ms"`,
	"frontend.namespaceRPS.visibility":       `1000`,
	"system.enableActivityEagerExecution":    `true`,
	"history.maxInFlightUpdatePayloads":      `1048576`,
	"history.workflowIdReuseMinimalInterval": `"1ms"`,
}

// Server is a running development server.
type Server struct {
	options Options
	process *child.Process
	output  *output
	log     *os.File
	stop    func() error
}

// Start starts a server and waits until it can be used. A canceled ctx ends
// the waiting, and then the server; afterwards it has no effect.
//
// The error is a *PortError when a port that was asked for is in use.
func Start(ctx context.Context, options Options) (*Server, error) {
	if options.Namespace == "" {
		options.Namespace = "default"
	}
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	for attempt := 1; ; attempt++ {
		s, err := start(ctx, options)
		if err == nil || attempt == attempts || !errors.Is(err, errPortTaken) {
			return s, err
		}
	}
}

// errPortTaken says that the server lost a port between choosing and using it.
var errPortTaken = errors.New("a port was taken while the server started")

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
	s := &Server{options: options, log: log, output: &output{file: log, logger: options.Logger}}
	s.process, err = child.Start(s.command(), child.Options{OwnGroup: true})
	if err != nil {
		_ = log.Close()
		return nil, err
	}
	s.stop = sync.OnceValue(func() error {
		s.output.quiet.Store(true)
		return errors.Join(s.process.Stop(stopTimeout), s.log.Close())
	})
	if err := s.ready(ctx); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

func (s *Server) command() *exec.Cmd {
	args := []string{
		"server", "start-dev",
		"--ip", host, "--port", strconv.Itoa(s.options.Port), "--ui-port", strconv.Itoa(s.options.UIPort),
		"--namespace", s.options.Namespace,
		"--db-filename", filepath.Join(s.options.DataDir, databaseFile),
		// With a write-ahead log a commit waits for no disk, and still nothing
		// is lost when the process dies.
		"--sqlite-pragma", "journal_mode=wal", "--sqlite-pragma", "synchronous=normal",
		"--log-format", "json", "--log-level", "warn",
		"--disable-config-file", "--disable-config-env",
	}
	if !s.options.Untuned {
		for key, value := range Tuning {
			args = append(args, "--dynamic-config-value", key+"="+value)
		}
	}
	cmd := exec.Command(s.options.Command, args...)
	// Nothing of the caller's environment: it may hold keys, and settings that
	// are meant for another server.
	cmd.Env = []string{"HOME=" + s.options.DataDir, "PATH=" + os.Getenv("PATH")}
	cmd.Stdout, cmd.Stderr = s.output, s.output
	cmd.WaitDelay = time.Second
	return cmd
}

// ready waits until the server can be used.
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
	return fmt.Errorf("start temporal server: %w%s", err, lastLines(s.output.Tail()))
}

// lastLines is the end of an error message.
func lastLines(tail string) string {
	if tail == "" {
		return ""
	}
	return "; its last lines:\n" + tail
}

// awaitHTTP waits until something answers at a URL.
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

// retry calls f until it succeeds or ctx ends, and returns its last error.
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

// Address of the gRPC API, like "127.0.0.1:7233".
func (s *Server) Address() string { return address(s.options.Port) }

// Namespace that contexts can use.
func (s *Server) Namespace() string { return s.options.Namespace }

// UIURL is the address of the Web UI, like "http://127.0.0.1:8233".
func (s *Server) UIURL() string { return "http://" + address(s.options.UIPort) }

// PID of the server's process.
func (s *Server) PID() int { return s.process.PID() }

// Done is closed when the server has ended.
func (s *Server) Done() <-chan struct{} { return s.process.Done() }

// Err waits for the end of the server and says how it ended, with its last
// lines. It is never nil: a server that nobody stops has no reason to end.
func (s *Server) Err() error {
	how := "exit status 0"
	if err := s.process.Err(); err != nil {
		how = err.Error()
	}
	tail := s.output.Tail()
	err := fmt.Errorf("temporal server ended by itself: %s; its log is %s%s", how, s.log.Name(), lastLines(tail))
	if strings.Contains(tail, "address already in use") {
		return errors.Join(errPortTaken, err)
	}
	return err
}

// Stop ends the server and waits until it is gone, for at most ten seconds
// before it is killed, which is an error but loses nothing. Stopping it again
// gives the same answer.
func (s *Server) Stop() error { return s.stop() }
