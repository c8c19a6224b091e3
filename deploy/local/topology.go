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

	"github.com/seed-9ed7edd4/chronicle/worker/child"
)

const (
	// startWithin is generous, for a machine that is compiling meanwhile: all
	// together take about ten seconds.
	startWithin = 3 * time.Minute
	// stopWithin is for one process. A worker hands its requests back meanwhile.
	stopWithin = 20 * time.Second
	// logTail is how much of a log is shown when its process fails.
	logTail = 2000
)

// topology is what runs, and where.
type topology struct {
	compose  compose
	bin, dir string
	workers  int
	// end ends everything, when a service cannot go on.
	end context.CancelCauseFunc

	services []*service
	mu       sync.Mutex // guards stopping and the processes of the services
	stopping bool

	postgresPort    int
	temporalAddress string
	namespace       string
	natsURL         string
}

// service is what runs until everything is stopped.
type service struct {
	name string
	// cmd and user are of what each of its processes is made.
	cmd  *exec.Cmd
	user *syscall.Credential
	// restarts says that it is started again when it is killed.
	restarts bool
	process  *process
}

// process is a process, and where it logs.
type process struct {
	*child.Process
	name, log string
}

// start starts the services in the order of their dependencies.
func (t *topology) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startWithin, fmt.Errorf("not up within %v", startWithin))
	defer cancel()
	// Before anything takes time.
	for _, name := range []string{"temporal-sql-tool", "temporal-server", "temporal", "nats-server", "worker"} {
		if _, err := os.Stat(t.program(name)); err != nil {
			return fmt.Errorf("%w: `make e2e-postgres` builds it", err)
		}
	}
	if err := t.prepareDirectory(); err != nil {
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
		{"workers", t.startWorkers},
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

func (t *topology) prepareDirectory() (err error) {
	if t.dir, err = filepath.Abs(t.dir); err != nil {
		return err
	}
	if err := os.MkdirAll(t.dir, 0o755); err != nil {
		return err
	}
	if entries, err := os.ReadDir(t.dir); err != nil || len(entries) > 0 {
		return errors.Join(err, fmt.Errorf("%s must be empty: its database cannot be gone on with", t.dir))
	}
	// PostgreSQL does not run as root, and its user has to get through.
	return os.Chmod(t.dir, 0o755)
}

// program is the path of a program in bin/.
func (t *topology) program(name string) string { return filepath.Join(t.bin, name) }

// run runs a command that ends, and shows what it wrote only if it fails.
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

// serve starts a service, which must not end by itself. When it is killed it is
// started again, if its container would be.
func (t *topology) serve(config types.ServiceConfig, name string, cmd *exec.Cmd, user *syscall.Credential) error {
	s := &service{name: name, cmd: cmd, user: user, restarts: config.Restart == types.RestartPolicyUnlessStopped}
	if err := t.begin(s); err != nil {
		return err
	}
	t.services = append(t.services, s)
	go t.keep(s)
	return nil
}

// begin starts a process of a service and writes down its pid.
func (t *topology) begin(s *service) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopping {
		return fmt.Errorf("%s is not started again: everything stops", s.name)
	}
	cmd := &exec.Cmd{Path: s.cmd.Path, Args: s.cmd.Args, Env: s.cmd.Env, Stdout: s.cmd.Stdout}
	p, err := t.launch(s.name, cmd, s.user)
	if err != nil {
		return err
	}
	s.process = p
	return os.WriteFile(t.pidFile(s.name), []byte(strconv.Itoa(p.PID())), 0o644)
}

// pidFile is where the pid of a service is.
func (t *topology) pidFile(name string) string { return filepath.Join(t.dir, name+".pid") }

// keep starts a service again for as long as its processes are killed, and ends
// everything when one has ended by itself.
func (t *topology) keep(s *service) {
	for {
		err := s.process.Err()
		if s.restarts && wasKilled(err) {
			err = t.begin(s)
		} else {
			err = s.process.failed(fmt.Errorf("ended by itself: %w", cmp.Or(err, errors.New("exit status 0"))))
		}
		if err != nil {
			t.end(err)
			return
		}
	}
}

// wasKilled reports whether a process ended by a signal.
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
	defer file.Close() // the process has its own
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

// failed adds the end of the log.
func (p *process) failed(err error) error {
	content, _ := os.ReadFile(p.log)
	if len(content) > logTail {
		content = content[len(content)-logTail:]
		_, content, _ = bytes.Cut(content, []byte("\n"))
	}
	return fmt.Errorf("%s: %w; the end of its log:\n%s", p.name, err, strings.TrimSpace(string(content)))
}

// stop stops what runs, the last one first: nobody loses what it works with.
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

// until calls f until it succeeds; if ctx ends before, it returns f's last error.
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
