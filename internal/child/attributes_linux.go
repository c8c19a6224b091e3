package child

import "syscall"

// attributes makes the kernel kill the child when the thread that started it exits. It
// uses SIGKILL because a child that shuts down slowly would keep its ports in use.
func attributes(options Options) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: options.OwnGroup, Credential: options.User, Pdeathsig: syscall.SIGKILL}
}
