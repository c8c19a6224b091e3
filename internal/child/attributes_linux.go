package child

import "syscall"

// attributes makes the kernel send a signal to the child when the thread that started it exits.
func attributes(options Options) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setpgid: options.OwnGroup}
	if options.OwnGroup {
		a.Pdeathsig = syscall.SIGKILL // a child that shuts down slowly would keep its ports in use
	} else {
		a.Pdeathsig = syscall.SIGTERM // the child may have to restore the terminal
	}
	return a
}
