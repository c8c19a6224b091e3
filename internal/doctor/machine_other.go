//go:build !linux && !darwin

package doctor

func freeBytes(string) (free, total uint64, err error) { return 0, 0, errUnsupported }

func openFiles() (uint64, error) { return 0, errUnsupported }
