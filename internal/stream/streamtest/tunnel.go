// Package streamtest makes a NATS server unreachable without closing connections.
//
//	tunnel := streamtest.Start(t, server.URL())
//	// point the client at tunnel.URL()
//	…
//	tunnel.Silence()
package streamtest

import (
	"net"
	"net/url"
	"sync/atomic"
	"testing"
)

// Tunnel forwards connections to a server. After Silence, it accepts connections and closes none,
// but transfers nothing, like a host that lost its network.
type Tunnel struct {
	listener net.Listener
	host     string
	silent   atomic.Bool
}

// Start opens a tunnel to a URL until the end of the test.
func Start(t testing.TB, to string) *Tunnel {
	t.Helper()
	u, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	tunnel := &Tunnel{listener: listener, host: u.Host}
	done := make(chan struct{})
	t.Cleanup(func() {
		close(done)
		_ = listener.Close()
	})
	go tunnel.serve(done)
	return tunnel
}

// URL returns the NATS URL of the tunnel.
func (t *Tunnel) URL() string { return "nats://" + t.listener.Addr().String() }

// Silence stops all transfers, for good.
func (t *Tunnel) Silence() { t.silent.Store(true) }

func (t *Tunnel) serve(done <-chan struct{}) {
	for {
		in, err := t.listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer in.Close()
			if !t.silent.Load() {
				out, err := net.Dial("tcp", t.host)
				if err != nil {
					return
				}
				defer out.Close()
				go t.carry(in, out)
				go t.carry(out, in)
			}
			<-done
		}()
	}
}

func (t *Tunnel) carry(to, from net.Conn) {
	buffer := make([]byte, 4096)
	for {
		n, err := from.Read(buffer)
		if t.silent.Load() {
			return
		}
		if err != nil {
			_ = to.Close()
			return
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}
