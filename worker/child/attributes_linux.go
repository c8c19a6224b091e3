package child

import "syscall"

// attributes let the kernel kill the child with the thread that started it.
// SIGKILL, because a child that is slow to end would be an orphan meanwhile,
// holding its ports.
func attributes(options Options) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: options.OwnGroup, Credential: options.User, Pdeathsig: syscall.SIGKILL}
}
