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
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/seed-9ed7edd4/chronicle/internal/child"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

// WorkerOptions of a worker. The zero value serves all contexts.
type WorkerOptions struct {
	// TaskQueue to work on. Empty: wire.TaskQueue.
	TaskQueue string
	// ContinueAsNewAfter is the number of history events after which a run continues as
	// new. 0: the worker's default.
	ContinueAsNewAfter int
	// DrainTimeout of the worker. 0: its default.
	DrainTimeout time.Duration
	// Command is a program with the worker's flags, and its first arguments. Empty: Options.Worker.
	Command []string
	// Args are further flags.
	Args []string
}

type Worker struct{ process *child.Process }

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
	// Without LogDir, the log is used only if the start fails.
	log := &bytes.Buffer{}
	cmd.Stderr = log
	r.workers++
	if r.options.LogDir != "" {
		file, err := os.Create(filepath.Join(r.options.LogDir, fmt.Sprintf("worker-%03d.log", r.workers)))
		if err != nil {
			return nil, err
		}
		defer file.Close() // the child has a copy
		cmd.Stderr = file
	}
	out, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd.Stdout = in
	process, err := child.Start(cmd, child.Options{OwnGroup: true})
	_ = in.Close() // the child has a copy
	if err != nil {
		return nil, err
	}
	w := &Worker{process}
	ready := make(chan error, 1)
	go func() {
		line, err := bufio.NewReader(out).ReadString('\n')
		if err == nil && !strings.HasPrefix(line, "ready ") {
			err = fmt.Errorf("unexpected output %q", line)
		}
		ready <- err
	}()
	select {
	case err := <-ready:
		if err == nil {
			return w, nil
		}
		w.Kill()
		return nil, fmt.Errorf("start %s: %w\n%s", command[0], err, log)
	case <-ctx.Done():
		w.Kill()
		return nil, fmt.Errorf("start %s: %w", command[0], context.Cause(ctx))
	}
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

func (w *Worker) Kill() {
	// An error means that the process has ended.
	_ = syscall.Kill(w.process.PID(), syscall.SIGKILL)
	<-w.process.Done()
}

func (w *Worker) RSS() (int64, error) { return rss(w.process.PID()) }
