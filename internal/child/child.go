// Package child runs programs that exit with this process.
//
//	p, err := child.Start(exec.Command("temporal", "server", "start-dev"), child.Options{OwnGroup: true})
//	…
//	err = p.Stop(10 * time.Second)
//
// On Linux the kernel ends the child when this process exits for any reason, SIGKILL included. It
// sends SIGKILL to a child in its own group, and SIGTERM to another, such as a program that uses the
// terminal and has to restore it. On other systems, a child outlives a parent that does not stop it,
// such as one that was killed.
package child

import (
	"fmt"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

type Options struct {
	// OwnGroup puts the child into its own process group, so that a Ctrl-C reaches only this
	// process. It must be false for a child that reads from the terminal.
	OwnGroup bool
}

type Process struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error
}

// Start starts a command and sets its SysProcAttr.
func Start(cmd *exec.Cmd, options Options) (*Process, error) {
	cmd.SysProcAttr = attributes(options)
	p := &Process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		// Linux ties the child to the thread that forked it, so that thread must live as
		// long as the child: keep it locked to this goroutine until Wait returns.
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

func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the child has exited and its output has been read.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err waits until the child exits and returns the error of [exec.Cmd.Wait]: nil, an *exec.ExitError, or
// an error about its output such as [exec.ErrWaitDelay].
func (p *Process) Err() error {
	<-p.done
	return p.err
}

// Stop sends SIGTERM. After the grace period it kills the child and returns an error. It does
// nothing if the child has exited.
func (p *Process) Stop(grace time.Duration) error {
	select {
	case <-p.done:
		return nil
	default:
	}
	// An error means that the child has just exited; Done reports that.
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
	return fmt.Errorf("%s (pid %d) did not exit within %v of SIGTERM and was killed", p.cmd.Path, p.PID(), grace)
}
