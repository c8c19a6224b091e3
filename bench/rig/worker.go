package rig

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/seed-9ed7edd4/chronicle/wire"
	"github.com/seed-9ed7edd4/chronicle/worker/child"
)

// WorkerOptions of a worker. The zero value takes all contexts.
type WorkerOptions struct {
	// TaskQueue to work on. Empty: wire.TaskQueue.
	TaskQueue string
}

// Worker is a process of the worker binary.
type Worker struct{ process *child.Process }

// StartWorker starts a worker and returns when it takes work.
func (r *Rig) StartWorker(ctx context.Context, options WorkerOptions) (*Worker, error) {
	if options.TaskQueue == "" {
		options.TaskQueue = wire.TaskQueue
	}
	cmd := exec.Command(r.options.Worker,
		"--address", r.places.Temporal, "--nats-url", r.places.NATS,
		"--blob-url", r.places.Blobs, "--task-queue", options.TaskQueue)
	cmd.Env = append(os.Environ(), "OPENAI_BASE_URL="+r.places.Model, "OPENAI_MODEL=scripted", "OPENAI_API_KEY=")
	// Its log is of interest only when it does not start.
	log := &bytes.Buffer{}
	cmd.Stderr = log
	out, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd.Stdout = in
	process, err := child.Start(cmd, child.Options{OwnGroup: true})
	_ = in.Close() // the process has its own
	if err != nil {
		return nil, err
	}
	w := &Worker{process}
	ready := make(chan error, 1)
	go func() {
		line, err := bufio.NewReader(out).ReadString('\n')
		if err == nil && !strings.HasPrefix(line, "ready ") {
			err = fmt.Errorf("it said %q", line)
		}
		ready <- err
	}()
	select {
	case err := <-ready:
		if err == nil {
			return w, nil
		}
		w.Kill()
		return nil, fmt.Errorf("start %s: %w\n%s", r.options.Worker, err, log)
	case <-ctx.Done():
		w.Kill()
		return nil, fmt.Errorf("start %s: %w", r.options.Worker, context.Cause(ctx))
	}
}

// Stop tells the worker to stop, with SIGTERM, and waits for its end.
func (w *Worker) Stop() error {
	if w == nil {
		return nil
	}
	err := w.process.Stop(stopWithin)
	return errors.Join(err, w.process.Err())
}

// Kill ends the worker at once, with SIGKILL.
func (w *Worker) Kill() {
	// An error means that it is gone already.
	_ = syscall.Kill(w.process.PID(), syscall.SIGKILL)
	<-w.process.Done()
}

// RSS is the worker's resident memory in bytes.
func (w *Worker) RSS() (int64, error) { return rss(w.process.PID()) }

// CPU is the processor time that the worker has used.
func (w *Worker) CPU() (time.Duration, error) { return cpu(w.process.PID()) }
