package stream

import (
	"net"
	"time"
)

// connectTimeout bounds an attempt to connect.
const connectTimeout = 2 * time.Second

// dialer dials connections that are over when a write fails. NATS would only
// see that in what it writes from a goroutine of its own, and let everyone who
// speaks wait for a server that has fallen silent, one after the other.
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
