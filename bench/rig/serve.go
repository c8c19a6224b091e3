package rig

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/seed-9ed7edd4/chronicle/internal/child"
)

// Program is a process that this package started.
type Program struct {
	process *child.Process
	// URL of a gateway; empty for a worker.
	URL string
}

// Serve starts the command `starter serve` for the default task queue, with further flags and environment variables.
func (r *Rig) Serve(ctx context.Context, args, env []string) (*Program, error) {
	process, ready, err := r.serve(ctx, r.options.TaskQueue, args, env)
	if err != nil {
		return nil, err
	}
	return &Program{process, ready["url"]}, nil
}

func (r *Rig) serve(ctx context.Context, taskQueue string, args, env []string) (*child.Process, map[string]string, error) {
	cmd := exec.Command(filepath.Join(filepath.Dir(r.options.Worker), "starter"), append([]string{"serve",
		"--address", r.addresses.Temporal, "--nats-url", r.addresses.NATS, "--blob-url", r.addresses.Blobs,
		"--task-queue", taskQueue, "--listen", "127.0.0.1:0", "--rate", "-1"}, args...)...)
	cmd.Env = append(os.Environ(), env...)
	return startProgram(ctx, cmd)
}

// Program returns the process of a worker.
func (w *Worker) Program() *Program { return &Program{process: w.process} }

// Stop stops the process, which must not have exited on its own.
func (p *Program) Stop() error { return p.process.Stop(stopTimeout) }

// Exited returns a channel that is closed when the process has ended.
func (p *Program) Exited() <-chan struct{} { return p.process.Done() }

// PeakRSS is the largest resident size so far in bytes, see proc_pid_status(5).
func (p *Program) PeakRSS() (int64, error) {
	path := fmt.Sprintf("/proc/%d/status", p.process.PID())
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(data) {
		if value, ok := bytes.CutPrefix(line, []byte("VmHWM:")); ok {
			kB, err := strconv.ParseInt(string(bytes.TrimSpace(bytes.TrimSuffix(bytes.TrimSpace(value), []byte("kB")))), 10, 64)
			return kB << 10, err
		}
	}
	return 0, fmt.Errorf("%s: no VmHWM", path)
}

// RSS is the resident size in bytes.
func (p *Program) RSS() (int64, error) { return rss(p.process.PID()) }

// NATSURL is the URL of the NATS server, with the credentials of clients.
func (r *Rig) NATSURL() string { return r.addresses.NATS }
