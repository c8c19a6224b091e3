package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/seed-9ed7edd4/chronicle/internal/child"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

// WorkerOptions of a worker. The zero value serves the contexts of the default task queue.
type WorkerOptions struct {
	// TaskQueue to work on. Empty: wire.TaskQueue.
	TaskQueue string
	// ContinueAsNewAfter is the number of history events after which a run continues as
	// new. 0: the worker's default.
	ContinueAsNewAfter int
	// DrainTimeout of the worker. 0: its default.
	DrainTimeout time.Duration
	// Command is a program and its first arguments. StartWorker appends the flags of the worker. Empty:
	// Options.Worker.
	Command []string
	// Args are further flags, Env further environment variables.
	Args, Env []string
}

type Worker struct {
	process *child.Process
	metrics string // URL; empty: none
}

// StartWorker returns when the worker is ready.
func (r *Rig) StartWorker(ctx context.Context, options WorkerOptions) (*Worker, error) {
	if options.TaskQueue == "" {
		options.TaskQueue = wire.TaskQueue
	}
	command := options.Command
	if len(command) == 0 {
		command = []string{r.options.Worker}
	}
	cmd := exec.Command(command[0], append(slices.Clone(command[1:]),
		"--address", r.addresses.Temporal, "--nats-url", r.addresses.NATS,
		"--blob-url", r.addresses.Blobs, "--task-queue", options.TaskQueue,
		"--continue-as-new-after", strconv.Itoa(options.ContinueAsNewAfter))...)
	cmd.Args = append(cmd.Args, options.Args...)
	if options.DrainTimeout > 0 {
		cmd.Args = append(cmd.Args, "--drain-timeout", options.DrainTimeout.String())
	}
	cmd.Env = append(os.Environ(), "OPENAI_BASE_URL="+r.addresses.Model, "OPENAI_MODEL=scripted", "OPENAI_API_KEY=")
	cmd.Env = append(cmd.Env, options.Env...)
	r.workers++
	if r.options.LogDir != "" {
		file, err := os.Create(filepath.Join(r.options.LogDir, fmt.Sprintf("worker-%03d.log", r.workers)))
		if err != nil {
			return nil, err
		}
		defer file.Close() // the child has a copy
		cmd.Stderr = file
	}
	process, ready, err := startProgram(ctx, cmd)
	if err != nil {
		return nil, err
	}
	return &Worker{process, ready["metrics"]}, nil
}

func (w *Worker) Stop() error {
	if w == nil {
		return nil
	}
	err := w.process.Stop(workerStopTimeout)
	return errors.Join(err, w.process.Err())
}

// workerStopTimeout exceeds the default drain timeout of a worker.
const workerStopTimeout = 45 * time.Second

func (w *Worker) HasEnded() bool {
	select {
	case <-w.process.Done():
		return true
	default:
		return false
	}
}

func (w *Worker) Kill() { kill(w.process) }

func kill(process *child.Process) {
	// An error means that the process has ended.
	_ = syscall.Kill(process.PID(), syscall.SIGKILL)
	<-process.Done()
}

func (w *Worker) RSS() (int64, error) { return rss(w.process.PID()) }
