package rig

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/seed-9ed7edd4/chronicle/internal/child"
)

// Process is a part of the rig.
type Process struct {
	// Ready has the values NAME=VALUE of the line that the process printed when it was ready.
	Ready map[string]string
	child *child.Process
}

// stopTimeout exceeds the default drain timeout of a worker.
const stopTimeout = 45 * time.Second

// launch starts a program and waits until it prints its line "ready NAME=VALUE…". It calls each with the
// lines after it. If the start fails, the error contains the log, unless cmd.Stderr is set.
func launch(ctx context.Context, cmd *exec.Cmd, each func(line []byte)) (_ *Process, err error) {
	log := &bytes.Buffer{}
	if cmd.Stderr == nil {
		cmd.Stderr = log
	}
	out, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout = in
	started, err := child.Start(cmd, child.Options{OwnGroup: true})
	_ = in.Close() // the child has a copy
	if err != nil {
		return nil, err
	}
	p := &Process{Ready: map[string]string{}, child: started}
	ready := make(chan error, 1)
	go func() {
		defer out.Close()
		lines := bufio.NewReader(out)
		text, err := lines.ReadString('\n')
		if err == nil && !strings.HasPrefix(text, "ready") {
			err = fmt.Errorf("unexpected output %q", text)
		}
		for word := range strings.FieldsSeq(text) {
			if name, value, ok := strings.Cut(word, "="); ok {
				p.Ready[name] = value
			}
		}
		for ready <- err; err == nil; {
			var line []byte
			if line, err = lines.ReadBytes('\n'); err == nil && each != nil {
				each(line)
			}
		}
	}()
	select {
	case err = <-ready:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		p.Kill()
		return nil, fmt.Errorf("start %s: %w\n%s", cmd.Path, err, log)
	}
	return p, nil
}

// Stop returns an error if the process does not stop in time or fails. A nil process is stopped.
func (p *Process) Stop() error {
	if p == nil {
		return nil
	}
	return errors.Join(p.child.Stop(stopTimeout), p.child.Err())
}

func (p *Process) Kill() {
	_ = syscall.Kill(p.child.PID(), syscall.SIGKILL) // an error means that it has ended
	<-p.child.Done()
}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.child.Done() }

func (p *Process) PID() int { return p.child.PID() }

// Memory returns the resident memory in bytes, now and at its peak, see proc_pid_status(5). It is 0 after the end.
func (p *Process) Memory() (now, peak int64) {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
	for line := range strings.Lines(string(data)) {
		name, value, _ := strings.Cut(line, ":")
		size, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		switch name {
		case "VmRSS":
			now = size << 10
		case "VmHWM":
			peak = size << 10
		}
	}
	return now, peak
}

// clockTick is the unit of times in /proc, fixed at 10 ms on Linux.
const clockTick = 10 * time.Millisecond

// CPU returns the processor time that a process has used, see proc_pid_stat(5).
func CPU(pid int) (time.Duration, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The second field is the command in parentheses and may contain spaces.
	_, rest, _ := strings.Cut(string(data), ") ")
	var user, system int64
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat: unexpected format %q", pid, data)
	}
	_, err = fmt.Sscan(fields[11]+" "+fields[12], &user, &system)
	return time.Duration(user+system) * clockTick, err
}

// role is a part of the rig that this program runs in another process.
type role struct {
	// Name is one of the keys of roles. Port is that of NATS; 0: any.
	Name string
	Port int `json:",omitempty"`
	// Temporal and Model are addresses.
	Temporal, Model string
	// Faults, Seed and Checked configure the model, see [Options].
	Faults  float64
	Seed    uint64
	Checked bool

	mu sync.Mutex // serializes lines of the output
}

const roleVariable = "CHRONICLE_RIG_ROLE"

// Main must be called first in main. In a process that was started as a part of the rig, it runs that part
// and does not return.
func Main() {
	encoded, ok := os.LookupEnv(roleVariable)
	if !ok {
		return
	}
	r := &role{}
	err := json.Unmarshal([]byte(encoded), r)
	if err == nil {
		err = map[string]func(*role) error{"nats": serveNATS, "model": serveModel, "bare": workBare}[r.Name](r)
	}
	fmt.Fprintf(os.Stderr, "rig: %s: %v\n", r.Name, err)
	os.Exit(1)
}

func (r *role) ready(address string) {
	fmt.Printf("ready address=%s\n", address)
}

func (r *role) report(o Observation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = json.NewEncoder(os.Stdout).Encode(o) // an error means that the parent has ended
}

// launch runs a role until it is killed.
func (r *role) launch(ctx context.Context, each func(line []byte)) (*Process, error) {
	executable, err := os.Executable()
	if err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(executable)
	cmd.Env = append(os.Environ(), roleVariable+"="+string(encoded))
	cmd.Stderr = os.Stderr
	return launch(ctx, cmd, each)
}
