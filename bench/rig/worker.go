package rig

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/seed-9ed7edd4/chronicle/internal/child"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

// WorkerOptions of a worker. The zero value takes all contexts.
type WorkerOptions struct {
	// TaskQueue to work on. Empty: wire.TaskQueue.
	TaskQueue string
	// ContinueAsNewAfter is the number of history entries after which a run
	// continues as new. 0: when Temporal suggests it.
	ContinueAsNewAfter int
	// DrainTimeout is how long running answers have to finish when the worker stops.
	// 0: the default of the worker.
	DrainTimeout time.Duration
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
		"--blob-url", r.places.Blobs, "--task-queue", options.TaskQueue,
		"--continue-as-new-after", strconv.Itoa(options.ContinueAsNewAfter))
	if options.DrainTimeout > 0 {
		cmd.Args = append(cmd.Args, "--drain-timeout", options.DrainTimeout.String())
	}
	cmd.Env = append(os.Environ(), "OPENAI_BASE_URL="+r.places.Model, "OPENAI_MODEL=scripted", "OPENAI_API_KEY=")
	// Without a directory for logs, the log is of interest only when the worker does
	// not start.
	log := &bytes.Buffer{}
	cmd.Stderr = log
	r.workers++
	if r.options.LogDir != "" {
		file, err := os.Create(filepath.Join(r.options.LogDir, fmt.Sprintf("worker-%03d.log", r.workers)))
		if err != nil {
			return nil, err
		}
		defer file.Close() // the process has its own
		cmd.Stderr = file
	}
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
	err := w.process.Stop(drainWithin)
	return errors.Join(err, w.process.Err())
}

// drainWithin is how long a worker may take to end: longer than it lets running
// answers finish.
const drainWithin = 45 * time.Second

// HasEnded reports whether the process has ended.
func (w *Worker) HasEnded() bool {
	select {
	case <-w.process.Done():
		return true
	default:
		return false
	}
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
