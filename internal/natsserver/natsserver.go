// Package natsserver embeds a NATS server, for development and tests. The server stores nothing. Its clients share
// one token and have no roles, so it belongs on a loopback address.
package natsserver

import (
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

type Options struct {
	// Host to listen on. Empty: 127.0.0.1.
	Host string
	// Port to listen on. 0: any free port.
	Port int
	// Token that clients need. Empty: none, for tests.
	Token string
}

type Server struct{ server *server.Server }

// Start returns when the server accepts connections.
func Start(options Options) (*Server, error) {
	if options.Host == "" {
		options.Host = "127.0.0.1"
	}
	port := options.Port
	if port == 0 {
		port = server.RANDOM_PORT
	}
	address := net.JoinHostPort(options.Host, strconv.Itoa(options.Port))
	s, err := server.NewServer(&server.Options{
		Host:          options.Host,
		Port:          port,
		Authorization: options.Token,
		NoLog:         true,
		NoSigs:        true,
	})
	if err != nil {
		return nil, fmt.Errorf("nats server on %s: %w", address, err)
	}
	s.Start()
	if !s.ReadyForConnections(time.Minute) {
		s.Shutdown()
		return nil, fmt.Errorf("nats server on %s accepts no connections (is the port in use?)", address)
	}
	return &Server{server: s}, nil
}

func (s *Server) URL() string { return s.server.ClientURL() }

func (s *Server) Shutdown() {
	s.server.Shutdown()
	s.server.WaitForShutdown()
}
