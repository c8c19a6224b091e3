package mcp

import (
	"context"
	"io"
	"time"
)

var (
	ParseServers = parseServers
	SentName     = sentName
	ServerOf     = serverOf
	Clean        = clean
)

// Dial makes a server connect through the pipes that a function returns.
func (s *Servers) Dial(name string, pipe func() (io.ReadWriteCloser, error)) {
	found := s.find(name)
	found.dial = func(_ context.Context, known *secrets) (*link, error) {
		p, err := pipe()
		if err != nil {
			return nil, err
		}
		return &link{transport: found.pipes(p, p, known), secrets: known}, nil
	}
}

// Hurry shortens the delays of servers, and the time in which they stop. The other timeouts only end hangs, because
// tests must not depend on the speed of a server.
func (s *Servers) Hurry() {
	for _, server := range s.servers {
		server.timing = timing{backoff: time.Millisecond, connect: time.Minute, ping: time.Minute, stop: 10 * time.Millisecond, wait: time.Minute}
	}
}

// GiveUpPings shortens the time in which a server responds to a ping.
func (s *Servers) GiveUpPings(name string) { s.find(name).timing.ping = 10 * time.Millisecond }

// GiveUp shortens the time for a connection to a server.
func (s *Servers) GiveUp(name string) { s.find(name).timing.connect = 50 * time.Millisecond }

// AwaitFailures starts the servers and waits until the starts of a server have failed n times.
func (s *Servers) AwaitFailures(ctx context.Context, name string, n int) error {
	s.Start()
	found := s.find(name)
	for {
		found.mu.Lock()
		failures, changed := found.failures, found.changed
		found.mu.Unlock()
		if failures >= n {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// PID returns the process of a server; 0 if it is not connected.
func (s *Servers) PID(name string) int {
	found := s.find(name)
	found.mu.Lock()
	defer found.mu.Unlock()
	if found.link == nil {
		return 0
	}
	return found.link.process.child.PID()
}

// AwaitConnected waits until a server is connected.
func (s *Servers) AwaitConnected(ctx context.Context, name string) error {
	s.Start()
	found := s.find(name)
	return found.await(ctx, time.Minute, func() bool { return found.link != nil })
}

// AwaitList waits until a condition holds for the names of the newest list of a server.
func (s *Servers) AwaitList(ctx context.Context, name string, holds func(names []string) bool) error {
	found := s.find(name)
	return found.await(ctx, time.Minute, func() bool {
		var names []string
		for _, t := range found.tools {
			names = append(names, t.Spec().Canonical)
		}
		return found.isListed && holds(names)
	})
}

type LineWriter = lineWriter

func NewLineWriter(scrub func(string) string, log func(string, int)) *LineWriter {
	return newLineWriter(scrub, log)
}

var Repaired = repaired
