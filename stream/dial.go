package stream

import (
	"net"
	"time"
)

// connectTimeout bounds an attempt to connect.
const connectTimeout = 2 * time.Second

// dialer dials connections that close when a write fails. NATS itself would notice only writes
// of its own goroutine, and each publisher would wait in turn for an unresponsive server.
type dialer struct{}

func (dialer) Dial(network, address string) (net.Conn, error) {
	conn, err := net.DialTimeout(network, address, connectTimeout)
	if err != nil {
		return nil, err
	}
	return breaking{conn}, nil
}

type breaking struct{ net.Conn }

func (c breaking) Write(data []byte) (int, error) {
	n, err := c.Conn.Write(data)
	if err != nil {
		_ = c.Conn.Close()
	}
	return n, err
}
