// Package child runs programs that end with this one.
//
//	p, err := child.Start(exec.Command("temporal", "server", "start-dev"), child.Options{OwnGroup: true})
//	…
//	err = p.Stop(10 * time.Second)
//
// On Linux a child is killed by the kernel when this process ends for any
// reason, SIGKILL included. Other systems have no such thing: there a child
// outlives a parent that was killed, but not one that was told to stop.
package child

import (
	"fmt"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// Options say how a child is run.
type Options struct {
	// OwnGroup puts the child into a process group of its own, so that a Ctrl-C
	// on the terminal reaches only this process, which then stops the child in
	// its own time. A child that reads the terminal must not have it.
	OwnGroup bool
	// User is who the child runs as; only root may choose. Nil: as this process.
	User *syscall.Credential
}

// Process is a running child.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error
}

// Start starts a command that was not started before. Its SysProcAttr is set
// here.
func Start(cmd *exec.Cmd, options Options) (*Process, error) {
	cmd.SysProcAttr = attributes(options)
	p := &Process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		// The kernel ties a child to the thread that forked it, not to the
		// process. So the thread must live as long as the child, and nobody
		// else may use it up: Go ends a thread whose goroutine returns locked.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		p.err = cmd.Wait()
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	return p, nil
}

// PID of the child.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the child has ended and all its output was read.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err is how the child ended, nil or an *exec.ExitError. It waits for the end.
func (p *Process) Err() error {
	<-p.done
	return p.err
}

// Stop asks the child to end, with SIGTERM, and waits for it. A child that is
// still there after the grace period is killed, which is an error. Stopping
// one that has ended does nothing.
func (p *Process) Stop(grace time.Duration) error {
	select {
	case <-p.done:
		return nil
	default:
	}
	// An error means that the child has just ended, which Done tells better.
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
		return nil
	case <-timer.C:
	}
	_ = p.cmd.Process.Kill()
	<-p.done
	return fmt.Errorf("%s (pid %d) did not end within %v of SIGTERM and was killed", p.cmd.Path, p.PID(), grace)
}
