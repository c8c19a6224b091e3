package stream

import (
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// ServerOptions of an embedded NATS server.
type ServerOptions struct {
	// Host to listen on. Empty: 127.0.0.1.
	Host string
	// Port to listen on. 0: any that is free.
	Port int
}

// Server is a NATS server within this process, for development and tests. It
// stores nothing and asks for no password, so it belongs on loopback.
type Server struct{ server *server.Server }

// StartServer returns once the server takes connections.
func StartServer(options ServerOptions) (*Server, error) {
	if options.Host == "" {
		options.Host = "127.0.0.1"
	}
	port := options.Port
	if port == 0 {
		port = server.RANDOM_PORT
	}
	address := net.JoinHostPort(options.Host, strconv.Itoa(options.Port))
	s, err := server.NewServer(&server.Options{
		Host:   options.Host,
		Port:   port,
		NoLog:  true,
		NoSigs: true,
	})
	if err != nil {
		return nil, fmt.Errorf("nats server on %s: %w", address, err)
	}
	s.Start()
	if !s.ReadyForConnections(5 * time.Second) {
		s.Shutdown()
		return nil, fmt.Errorf("nats server on %s takes no connections: is the port in use?", address)
	}
	return &Server{server: s}, nil
}

// URL is where clients connect.
func (s *Server) URL() string { return s.server.ClientURL() }

// Shutdown ends the server and its connections.
func (s *Server) Shutdown() {
	s.server.Shutdown()
	s.server.WaitForShutdown()
}
