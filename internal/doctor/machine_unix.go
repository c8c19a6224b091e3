//go:build linux || darwin

package doctor

import "syscall"

func freeBytes(folder string) (free, total uint64, err error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(folder, &s); err != nil {
		return 0, 0, err
	}
	size := uint64(s.Bsize)
	return s.Bavail * size, s.Blocks * size, nil
}

// openFiles returns the soft limit, which Go raises to the hard limit at start.
func openFiles() (uint64, error) {
	var limit syscall.Rlimit
	err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit)
	return limit.Cur, err
}
