package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"sync"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Options configure [Servers].
type Options struct {
	Servers []Server            // of [ReadServers], or your own
	Getenv  func(string) string // for env:NAME, PATH and HOME; nil: [os.Getenv]
	Logger  *slog.Logger        // of starts, failures and standard error; nil: [slog.Default]
	OnQuirk func(kind string)   // called for each deviation of a server that was worked around; nil: ignored
}

// Servers are the MCP servers of a worker. They are safe for concurrent use.
type Servers struct {
	logger  *slog.Logger
	servers []*server // sorted by name
	life    context.Context
	end     context.CancelFunc
	running sync.WaitGroup
	start   sync.Once
	http    *http.Transport
}

// New returns servers that are not started. An error names the server and the field.
func New(options Options) (*Servers, error) {
	getenv := options.Getenv
	if getenv == nil {
		getenv = os.Getenv
	}
	report := options.OnQuirk
	if report == nil {
		report = func(string) {}
	}
	s := &Servers{logger: cmp.Or(options.Logger, slog.Default()), http: http.DefaultTransport.(*http.Transport).Clone()}
	s.life, s.end = context.WithCancel(context.Background())
	for _, config := range options.Servers {
		if err := config.validate(); err != nil {
			return nil, fmt.Errorf("server %q: %w", config.Name, err)
		}
		if s.find(config.Name) != nil {
			return nil, fmt.Errorf("server %q: the name is used twice", config.Name)
		}
		added := &server{config: config, getenv: getenv, logger: s.logger, http: s.http, timing: defaultTiming, report: report, quirks: map[string]int{}, changed: make(chan struct{})}
		added.dial = added.connection
		s.servers = append(s.servers, added)
	}
	return s, nil
}

// Start starts the servers once and keeps them running. It does not wait for them.
func (s *Servers) Start() {
	s.start.Do(func() {
		for _, server := range s.servers {
			s.running.Go(func() { server.run(s.life) })
		}
	})
}

// Close stops the servers and waits until their processes have exited.
func (s *Servers) Close() {
	s.start.Do(func() {}) // later starts have no effect
	s.end()
	s.running.Wait()
	for _, server := range s.servers {
		server.set(func() { server.err = errStopping })
	}
	s.http.CloseIdleConnections()
}

// Status is the state of a server.
type Status struct {
	Name     string
	Error    error                // why it is not connected; nil: it is
	Tools    int                  // that can be offered
	Withheld []event.WithheldTool // that cannot be offered
	Quirks   map[string]int       // deviations that were worked around, by kind
}

// Status starts the servers, waits for the first list of the one with a name, and returns its state.
func (s *Servers) Status(ctx context.Context, name string) Status {
	s.Start()
	server := s.find(name)
	if server == nil {
		return Status{Name: name, Error: errors.New("no server has this name")}
	}
	_, err := server.offered(ctx)
	server.mu.Lock()
	defer server.mu.Unlock()
	if server.link == nil {
		err = cmp.Or(err, server.err)
	}
	status := Status{Name: name, Error: err, Quirks: maps.Clone(server.quirks)}
	for _, t := range server.tools {
		if spec := t.Spec(); spec.Withheld != "" {
			status.Withheld = append(status.Withheld, event.WithheldTool{Name: spec.Canonical, Reason: spec.Withheld})
		} else {
			status.Tools++
		}
	}
	return status
}

// Names returns the names of the servers.
func (s *Servers) Names() (names []string) {
	for _, server := range s.servers {
		names = append(names, server.config.Name)
	}
	return names
}

func (s *Servers) find(name string) *server {
	for _, server := range s.servers {
		if server.config.Name == name {
			return server
		}
	}
	return nil
}

// quirk counts a deviation of the server.
func (s *server) quirk(kind string) {
	s.report(kind)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.quirks[kind]++
}
