package devserver

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"
)

// host is the only address that anything here listens on.
const host = "127.0.0.1"

// PortError says that something else listens on a port.
type PortError struct {
	Port int
}

// Error names the address.
func (e *PortError) Error() string { return address(e.Port) + " is already in use" }

// FreePorts returns the given ports of 127.0.0.1 if all of them are free, with
// a free one in place of each zero; all are different. The error is a
// *PortError when one is in use.
//
// A port may be taken between the answer and its use: whoever uses it must
// still be ready to fail.
func FreePorts(ports ...int) ([]int, error) {
	free := make([]int, len(ports))
	for i, port := range ports {
		// Listening until the end keeps the next zero from getting the same one.
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
