package devserver

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"
)

const host = "127.0.0.1"

type PortError struct {
	Port int
}

func (e *PortError) Error() string { return address(e.Port) + " is already in use" }

// FreePorts checks ports of 127.0.0.1 and replaces each zero by a free port. It returns a *PortError
// if a port is in use. Another process can take a port before the caller uses it.
func FreePorts(ports ...int) ([]int, error) {
	free := make([]int, len(ports))
	for i, port := range ports {
		// Keep listening until the end so that all ports are different.
		listener, err := net.Listen("tcp", address(port))
		if errors.Is(err, syscall.EADDRINUSE) {
			return nil, &PortError{Port: port}
		}
		if err != nil {
			return nil, fmt.Errorf("port %d: %w", port, err)
		}
		defer listener.Close()
		free[i] = listener.Addr().(*net.TCPAddr).Port
	}
	return free, nil
}

func address(port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }
