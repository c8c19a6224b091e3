package mcp

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/seed-9ed7edd4/chronicle/internal/child"
)

// process is a server that runs in a process group of its own.
type process struct {
	child         *child.Process
	stdin, stdout *os.File
	stderr        *lineWriter
	grace         time.Duration // see timing.stop
}

// startProcess starts a server, whose standard error goes to stderr.
func startProcess(s Server, env []string, stderr *lineWriter, grace time.Duration) (*process, error) {
	path, err := lookPath(s.Command, env)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(path, s.Args...)
	cmd.Env, cmd.Dir, cmd.Stderr = env, s.Dir, stderr
	cmd.WaitDelay = grace // maximum delay of Wait by descendants that keep the standard error open
	// With pipes of its own, cmd would close them before all output has been read.
	theirInput, input, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	output, theirOutput, err := os.Pipe()
	if err != nil {
		theirInput.Close()
		input.Close()
		return nil, err
	}
	cmd.Stdin, cmd.Stdout = theirInput, theirOutput
	started, err := child.Start(cmd, child.Options{OwnGroup: true})
	theirInput.Close()
	theirOutput.Close()
	if err != nil {
		input.Close()
		output.Close()
		return nil, startError(err)
	}
	return &process{child: started, stdin: input, stdout: output, stderr: stderr, grace: grace}, nil
}

func lookPath(command string, env []string) (string, error) {
	path, err := exec.LookPath(command)
	if err == nil {
		return path, nil
	}
	return "", fmt.Errorf("command %s: %w", command, reasonOf(err))
}

func startError(err error) error { return fmt.Errorf("start: %w", reasonOf(err)) }

func reasonOf(err error) error {
	var execErr *exec.Error
	var pathErr *fs.PathError
	switch {
	case errors.As(err, &pathErr):
		return pathErr.Err
	case errors.As(err, &execErr):
		return execErr.Err
	}
	return err
}

func (p *process) done() <-chan struct{} { return p.child.Done() }

func (p *process) exit() error {
	if err := p.child.Err(); err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		return fmt.Errorf("the server exited: %w", err)
	}
	return errors.New("the server exited")
}

// stop closes the input, then sends SIGTERM and SIGKILL to the process group, as MCP specifies. It
// returns when the process has exited.
func (p *process) stop() {
	p.stdin.Close()
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if waitFor(p.done(), p.grace) {
			break
		}
		p.signal(signal)
	}
	<-p.done()
	p.signal(syscall.SIGKILL) // descendants may have survived
	p.stdout.Close()
	p.stderr.flush()
}

// signal ignores the error, which means that the group has no process.
func (p *process) signal(signal syscall.Signal) { _ = syscall.Kill(-p.child.PID(), signal) }
