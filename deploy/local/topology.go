package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/seed-9ed7edd4/chronicle/internal/child"
)

const (
	// startWithin allows for a busy machine; a start usually takes ten seconds.
	startWithin = 3 * time.Minute
	// stopWithin applies to each process. A worker with running answers may take longer (--drain-timeout),
	// and is then killed.
	stopWithin = 20 * time.Second
	// logTail is how many bytes of a failed process's log are shown.
	logTail = 2000
)

type topology struct {
	compose  compose
	bin, dir string
	workers  int
	// end stops everything, when a service cannot continue.
	end context.CancelCauseFunc

	services []*service
	mu       sync.Mutex // guards stopping and the processes of the services
	stopping bool

	postgresPort    int
	temporalAddress string
	namespace       string
	natsURL         string
	blobURL         string
	gatewayURL      string
	prometheusURL   string
	modelURL        string
	targets         targets
}

type service struct {
	name string
	// cmd and user are the template for each process.
	cmd  *exec.Cmd
	user *syscall.Credential
	// restarts is set if the service is restarted after being killed.
	restarts bool
	process  *process
}

type process struct {
	*child.Process
	name, log string
}

func (t *topology) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startWithin, fmt.Errorf("not ready within %v", startWithin))
	defer cancel()
	if err := t.prepare("temporal-sql-tool", "temporal-server", "temporal", "nats-server", "versitygw", "worker", "starter", "prometheus"); err != nil {
		return err
	}
	begun := time.Now()
	for _, step := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"PostgreSQL", t.startPostgres},
		{"schema", t.setUpSchema},
		{"Temporal", t.startTemporal},
		{"namespace", t.makeNamespace},
		{"NATS", t.startNATS},
		{"S3", t.startS3},
		{"workers", t.startWorkers},
		{"gateway", t.startGateway},
		{"Prometheus", t.startPrometheus},
	} {
		since := time.Now()
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
		fmt.Fprintf(os.Stderr, "local: %-10s %5.1f s\n", step.what, time.Since(since).Seconds())
	}
	fmt.Fprintf(os.Stderr, "local: Temporal at %s, NATS at %s, after %.1f s\n",
		t.temporalAddress, t.natsURL, time.Since(begun).Seconds())
	return nil
}

func (t *topology) prepare(programs ...string) (err error) {
	for _, name := range programs {
		if _, err := os.Stat(t.program(name)); err != nil {
			return fmt.Errorf("%w (`make e2e-postgres` builds it)", err)
		}
	}
	if t.dir, err = filepath.Abs(t.dir); err != nil {
		return err
	}
	if err := os.MkdirAll(t.dir, 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(t.dir)
	if err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	if len(entries) > 0 {
		return fmt.Errorf("data directory %s: not empty (choose an empty one; an old database cannot be reused)", t.dir)
	}
	// PostgreSQL runs as another user when we are root and needs access.
	return os.Chmod(t.dir, 0o755)
}

func (t *topology) program(name string) string { return filepath.Join(t.bin, name) }

// run runs a command to completion and shows its output only if it fails.
func (t *topology) run(ctx context.Context, name string, cmd *exec.Cmd, user *syscall.Credential) error {
	p, err := t.launch(name, cmd, user)
	if err != nil {
		return err
	}
	select {
	case <-p.Done():
	case <-ctx.Done():
		return errors.Join(context.Cause(ctx), p.Stop(stopWithin))
	}
	if err := p.Err(); err != nil {
		return p.failed(err)
	}
	return nil
}

// A service must not exit on its own. If it is killed, the restart policy of its container applies.
func (t *topology) serve(config types.ServiceConfig, name string, cmd *exec.Cmd, user *syscall.Credential) error {
	s := &service{name: name, cmd: cmd, user: user, restarts: config.Restart == types.RestartPolicyUnlessStopped}
	if err := t.begin(s); err != nil {
		return err
	}
	t.services = append(t.services, s)
	go t.keep(s)
	return nil
}

func (t *topology) begin(s *service) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopping {
		return fmt.Errorf("%s is not restarted: shutting down", s.name)
	}
	cmd := &exec.Cmd{Path: s.cmd.Path, Args: s.cmd.Args, Env: s.cmd.Env, Stdout: s.cmd.Stdout}
	p, err := t.launch(s.name, cmd, s.user)
	if err != nil {
		return err
	}
	s.process = p
	return os.WriteFile(t.pidFile(s.name), []byte(strconv.Itoa(p.PID())), 0o644)
}

func (t *topology) pidFile(name string) string { return filepath.Join(t.dir, name+".pid") }

// keep restarts a service that is killed. If it exits on its own, keep stops everything.
func (t *topology) keep(s *service) {
	for {
		err := s.process.Err()
		if s.restarts && wasKilled(err) {
			err = t.begin(s)
		} else {
			err = s.process.failed(fmt.Errorf("exited: %w", cmp.Or(err, errors.New("exit status 0"))))
		}
		if err != nil {
			t.end(err)
			return
		}
	}
}

func wasKilled(err error) bool {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled()
}

func (t *topology) launch(name string, cmd *exec.Cmd, user *syscall.Credential) (*process, error) {
	log := filepath.Join(t.dir, name+".log")
	file, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer file.Close() // the process has its own descriptor
	if cmd.Stdout == nil {
		cmd.Stdout = file
	}
	cmd.Stderr = file
	cmd.Dir = t.dir
	cmd.WaitDelay = time.Second
	p, err := child.Start(cmd, child.Options{OwnGroup: true, User: user})
	if err != nil {
		return nil, err
	}
	return &process{Process: p, name: name, log: log}, nil
}

func (p *process) failed(err error) error {
	content, _ := os.ReadFile(p.log)
	if len(content) > logTail {
		content = content[len(content)-logTail:]
		_, content, _ = bytes.Cut(content, []byte("\n"))
	}
	return fmt.Errorf("%s: %w; end of its log:\n%s", p.name, err, strings.TrimSpace(string(content)))
}

// stop stops each service before those that it depends on.
func (t *topology) stop() error {
	t.mu.Lock()
	t.stopping = true
	t.mu.Unlock()
	var errs []error
	for _, s := range slices.Backward(t.services) {
		errs = append(errs, s.process.Stop(stopWithin))
	}
	return errors.Join(errs...)
}

// until calls f until it succeeds. If ctx ends first, it returns f's last error.
func until(ctx context.Context, f func() error) error {
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := f()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-ticker.C:
		}
	}
}
