package stream

import (
	"net"
	"time"
)

const connectTimeout = 2 * time.Second

// dialer dials connections that close when a write fails. In nats.go, only failed writes of the
// flusher end a connection (nats.ReconnectOnFlusherError,
// https://github.com/nats-io/nats.go/pull/1015). With nats.WriteBufferSize(1), Publish writes, and
// publishers would wait in turn for an unresponsive server. The dialer is unnecessary once that
// option covers Publish.
type dialer struct{}

func (dialer) Dial(network, address string) (net.Conn, error) {
	conn, err := net.DialTimeout(network, address, connectTimeout)
	if err != nil {
		return nil, err
	}
	return closeOnError{conn}, nil
}

type closeOnError struct{ net.Conn }

func (c closeOnError) Write(data []byte) (int, error) {
	n, err := c.Conn.Write(data)
	if err != nil {
		_ = c.Conn.Close()
	}
	return n, err
}
