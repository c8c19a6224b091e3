package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

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
	// end ends everything, when a process ends that nobody stopped.
	end context.CancelCauseFunc

	processes []*process
	stopping  atomic.Bool

	postgresPort    int
	temporalAddress string
	namespace       string
	natsURL         string
}

// process is a service that runs.
type process struct {
	*child.Process
	name, log string
	file      *os.File
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
	defer p.file.Close()
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

// serve starts a service, which must not end before it is stopped.
func (t *topology) serve(name string, cmd *exec.Cmd, user *syscall.Credential) error {
	p, err := t.launch(name, cmd, user)
	if err != nil {
		return err
	}
	t.processes = append(t.processes, p)
	go func() {
		<-p.Done()
		if !t.stopping.Load() {
			err := p.Err()
			if err == nil {
				err = errors.New("exit status 0")
			}
			t.end(p.failed(fmt.Errorf("ended by itself: %w", err)))
		}
	}()
	return nil
}

func (t *topology) launch(name string, cmd *exec.Cmd, user *syscall.Credential) (*process, error) {
	log := filepath.Join(t.dir, name+".log")
	file, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	if cmd.Stdout == nil {
		cmd.Stdout = file
	}
	cmd.Stderr = file
	cmd.Dir = t.dir
	cmd.WaitDelay = time.Second
	p, err := child.Start(cmd, child.Options{OwnGroup: true, User: user})
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &process{Process: p, name: name, log: log, file: file}, nil
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
	t.stopping.Store(true)
	var errs []error
	for _, p := range slices.Backward(t.processes) {
		errs = append(errs, p.Stop(stopWithin), p.file.Close())
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
