// Package chronicletest runs what programs with contexts need, for their tests and examples: a Temporal development
// server, NATS, a blob store in a temporary folder, and a scripted model.
//
//	server := chronicletest.Start(t, llmtest.Answer("Hello"))
//	conn, err := contexts.Connect(t.Context(), server.Config())
//	worker, err := conn.NewWorker(contexts.Options{Models: llm.New(llm.Options{Defaults: server.Defaults()})})
//
// It requires the command temporal on PATH (https://docs.temporal.io/cli), and takes about two seconds to start.
package chronicletest

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"

	sdkclient "go.temporal.io/sdk/client"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/internal/devserver"
	"github.com/seed-9ed7edd4/chronicle/internal/natsserver"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
)

// Server is the servers. They listen on this machine only.
type Server struct {
	Model    *llmtest.Server
	dir      string
	temporal *devserver.Server
	nats     *natsserver.Server
	model    script
}

// TB is the part of [testing.TB] that servers need.
type TB interface {
	llmtest.TB
	Fatalf(format string, args ...any)
}

// Start starts the servers until the end of the test. The test fails if they do not start, on requests to the model that
// its steps do not expect, and on remaining steps.
func Start(t TB, steps ...llmtest.Step) *Server {
	t.Helper()
	s, err := New(context.Background(), steps...)
	if err != nil {
		t.Fatalf("start the servers of a test: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("%v", err)
		}
	})
	return s
}

// New starts the servers, for programs without a test. The caller closes them.
func New(ctx context.Context, steps ...llmtest.Step) (_ *Server, err error) {
	s := &Server{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.dir, err = os.MkdirTemp("", "chronicletest-"); err != nil {
		return nil, err
	}
	command, err := devserver.Find(ctx, nil)
	if err != nil {
		return nil, err
	}
	if s.temporal, err = devserver.Start(ctx, devserver.Options{Command: command, DataDir: s.dir, Unsynced: true}); err != nil {
		return nil, err
	}
	if s.nats, err = natsserver.Start(natsserver.Options{}); err != nil {
		return nil, err
	}
	s.Model = llmtest.Start(&s.model, steps...)
	return s, nil
}

// Config returns how clients and workers reach the servers. It discards the log.
func (s *Server) Config() client.Config {
	return client.Config{
		Temporal: &sdkclient.Options{HostPort: s.temporal.Address()},
		NATSURL:  s.nats.URL(),
		BlobURL:  (&url.URL{Scheme: "file", Path: filepath.ToSlash(filepath.Join(s.dir, "blobs"))}).String(),
		Logger:   slog.New(slog.DiscardHandler),
	}
}

// Defaults makes the scripted model that of contexts without a provider of their own.
func (s *Server) Defaults() llm.Defaults {
	return llm.Defaults{ProviderID: "scripted", BaseURL: s.Model.URL, Model: "scripted"}
}

// Close stops the servers and deletes their data. The error says which requests to the model were not expected, and how
// many steps remain.
func (s *Server) Close() error {
	err := s.model.close()
	if s.nats != nil {
		s.nats.Shutdown()
	}
	if s.temporal != nil {
		err = errors.Join(err, s.temporal.Stop())
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}
